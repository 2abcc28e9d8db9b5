/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These functions find the zone that is the best to clean, among any number of zones. */
#ifndef RFS_SPACE_RANK_H
#define RFS_SPACE_RANK_H

#include "volume/volume.h"

/* A way of cleaning says how many blocks of a victim may be in use at most. */
enum rfs_clean {
	RFS_CLEAN_IDLE,		/* what costs little, while nobody is at work */
	RFS_CLEAN_EARLY,	/* what is worth it, before anybody waits */
	RFS_CLEAN_NOW,		/* what the policy says */
	RFS_CLEAN_HARD,		/* that was in vain: what gives most room */
	RFS_CLEANS
};

#define RFS_ALL_WAYS	(~0ULL)

int rfs_rank_alloc(struct rfs_fs *fs);	/* when zones and ways are known */
/* The caller has changed a zone, so that its rank among the others has to be found anew. */
void rfs_rank_stale(struct rfs_fs *fs, u32 nr);
void rfs_rank_all_stale(struct rfs_fs *fs);

/*
 * Returns the best victim of these ways, which have a bit each, or 0 if there is none. A victim is
 * closed, outside the window and not yet chosen. Of equally good ones it is the first. rfs_victim()
 * looks at what has changed and rfs_victim_scan() at each zone, and they find the same. With
 * cost-hotness rfs_victim() is a scan, too: hotness is rounded, and its line not straight.
 */
u32 rfs_victim(struct rfs_fs *fs, enum rfs_clean how, u64 now, u64 ways);
u32 rfs_victim_scan(const struct rfs_fs *fs, enum rfs_clean how, u64 now,
		    u64 ways);

#ifndef __KERNEL__
/* A test may set this to compare what was found with what a scan finds. It may be NULL. */
extern void (*rfs_victim_found)(const struct rfs_fs *fs, enum rfs_clean how,
				u64 now, u64 ways, u32 nr);
#endif

#endif
