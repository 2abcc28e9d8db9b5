/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * States that somebody who reads a drive cannot tell apart. Somebody looks at
 * one state, says which blocks were read, and is told which other states have
 * the same in all of these blocks, and so need not be looked at.
 *
 * Lines that are read:
 *
 *	state ID OP OUTCOMES KEY	a state; OUTCOMES as letters, or -; only
 *					states of one KEY can be the same
 *	looked ID [NS LBA COUNT]...	it was looked at, and this was read; with
 *					nothing, it is the same as no other
 *	next COUNT			asks
 *
 * IDs begin with 0 and have no gaps. The answer to "next" is
 *
 *	same ID OTHER			it is as that one, which was looked at
 *	look ID				at most COUNT of these: look at it
 *	.
 *
 * On zoned drives everybody is taken to have read the state of all zones. A
 * block that is torn, and one that cannot be read for another reason, are the
 * same as others of their kind.
 */
#ifndef RSDVIEW_MATCH_H
#define RSDVIEW_MATCH_H

#include <stdio.h>

#include "view.h"

/* Answers until @in ends. 0, or -1 after a message on standard error. */
int match_states(struct rsdview *view, FILE *in);

#endif
