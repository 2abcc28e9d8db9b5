/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * These are calls that wait for a write to the flash. Whoever takes the list
 * frees it.
 */
#ifndef HFMSIM_WAIT_H
#define HFMSIM_WAIT_H

struct call;			/* see drives.h */

struct wait {
	struct call *call;
	struct wait *next;
};

#endif
