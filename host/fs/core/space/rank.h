/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which zone is the best to be cleaned, of any number of zones. */
#ifndef RFS_SPACE_RANK_H
#define RFS_SPACE_RANK_H

#include "volume/volume.h"

/* How much is cleaned: a victim has no more in use than the way says */
enum rfs_clean {
	RFS_CLEAN_IDLE,		/* what costs little, while nobody is at work */
	RFS_CLEAN_EARLY,	/* what is worth it, before anybody waits */
	RFS_CLEAN_NOW,		/* what the policy says */
	RFS_CLEAN_HARD,		/* that was in vain: what gives most room */
	RFS_CLEANS
};

#define RFS_ALL_WAYS	(~0ULL)

int rfs_rank_alloc(struct rfs_fs *fs);	/* when zones and ways are known */
/* A zone has changed: where it comes among the others is not known any more */
void rfs_rank_stale(struct rfs_fs *fs, u32 nr);
void rfs_rank_all_stale(struct rfs_fs *fs);

/*
 * The best zone to clean that is closed, outside the window and not yet chosen, of these
 * ways, with a bit each; 0: there is none. Of equally good ones it is the first. It
 * looks at what has changed, and rfs_victim_scan() at each zone: they find the same.
 * With cost-hotness it is a scan, too: hotness is rounded, and its line not straight.
 */
u32 rfs_victim(struct rfs_fs *fs, enum rfs_clean how, u64 now, u64 ways);
u32 rfs_victim_scan(const struct rfs_fs *fs, enum rfs_clean how, u64 now,
		    u64 ways);

#ifndef __KERNEL__
/* What was found, for who compares it with what a scan finds; may be NULL */
extern void (*rfs_victim_found)(const struct rfs_fs *fs, enum rfs_clean how,
				u64 now, u64 ways, u32 nr);
#endif

#endif
