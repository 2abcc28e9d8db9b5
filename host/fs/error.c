// SPDX-License-Identifier: GPL-2.0
/* What an error of the core makes of the volume. */
#include <linux/blkdev.h>

#include "rfsm.h"

bool rfsm_dead(const struct rfsm *m)
{
	return READ_ONCE(m->dev.dead);
}

/* An error of the core: of metadata, or it has stopped writing. */
int rfsm_failed(struct rfsm *m, int ret)
{
	struct super_block *sb = m->sb;

	if (ret == -EROFS && !m->clean_ro)
		ret = -EIO;
	if ((ret != -EIO && ret != -EUCLEAN) || rfsm_dead(m))
		return ret;
	if (m->opt.errors == RFSM_ERRORS_PANIC)
		panic("rfs: %pg: error %d\n", sb->s_bdev, ret);
	pr_err_ratelimited("rfs: %pg: error %d%s\n", sb->s_bdev, ret,
			   m->opt.errors == RFSM_ERRORS_RO ?
			   ", read-only" : "");
	if (m->opt.errors == RFSM_ERRORS_RO && !sb_rdonly(sb)) {
		m->fs->read_only = true;
		sb->s_flags |= SB_RDONLY;
	}
	return ret;
}
