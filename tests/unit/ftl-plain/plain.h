/*
 * A floor has one header. This layer is one file, so there is nothing in it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_PLAIN_H
#define RSD_PLAIN_H

#include "../ftl.h"

#endif
