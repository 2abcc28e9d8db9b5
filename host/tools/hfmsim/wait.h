/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that wait for a write to the flash: a list, which frees who takes it. */
#ifndef HFMSIM_WAIT_H
#define HFMSIM_WAIT_H

struct call;			/* see drives.h */

struct wait {
	struct call *call;
	struct wait *next;
};

#endif
