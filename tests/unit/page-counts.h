/*
 * What a page map knows of the flash, held against the flash itself.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_PAGE_COUNTS_H
#define RSD_PAGE_COUNTS_H

#include "harness.h"

/*
 * Of a drive with ftl=page or ftl=dftl that was just opened, without a write
 * buffer: each block has as many valid pages as it is said to have, and the
 * newest flash page of each map page is the one in use.
 */
void check_page_counts(const Bed *bed);

#endif
