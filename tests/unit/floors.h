/*
 * All floors of the core, for tests that look inside.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_TEST_FLOORS_H
#define RSD_TEST_FLOORS_H

#include "front/front.h"
#include "ftl/zone/zone.h"

#endif
