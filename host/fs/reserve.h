/* SPDX-License-Identifier: GPL-2.0 */
/* These are reservations for dirty blocks. */
#ifndef RFSM_RESERVE_H
#define RFSM_RESERVE_H

#include "blocks.h"
#include "wake.h"

/*
 * Reserves n blocks of a locked folio that will be dirty, and others after them that may be dirty,
 * `most` in all. The others are overwritten, and get a reservation only if there is room without
 * waiting. -EAGAIN says that the caller has to unlock the folio and wait for room; some blocks may
 * be reserved.
 */
int rfsm_reserve(struct rfs_sb_info *sbi, struct inode *inode,
		 struct folio *folio, u64 block, u32 n, u32 most,
		 enum rfsm_waited waited);
/*
 * Ends the reservations of n blocks of a folio, if they have any. The caller holds the volume lock.
 */
void rfsm_unreserve(struct rfs_sb_info *sbi, struct inode *inode,
		    struct folio *folio, u64 block, u32 n);
/* Says whether a block is reserved. The folio is locked. */
bool rfsm_is_reserved(const struct folio *folio, u64 block);

/*
 * Notes that these bytes of a locked folio of one page, which is reserved, are new, beside those
 * before.
 */
void rfsm_dirty_bytes(struct folio *folio, u32 from, u32 to);
/* Returns the bytes that rfsm_dirty_bytes() has noted. False says that it has noted none. */
bool rfsm_new_bytes(struct folio *folio, struct rfsm_bytes *bytes);

#endif
