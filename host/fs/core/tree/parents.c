// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The blocks of maps that lead to a dirty block become dirty with it, long before the check-point.
 * So the number of dirty blocks says how many the check-point will write.
 */
#include "tree/tree.h"

/*
 * Returns the block of a map that leads to a dirty one. NULL says that there is none, or that it
 * cannot be read.
 */
static struct rfs_buf *rfs_map_of_buf(struct rfs_fs *fs,
				      const struct rfs_buf *buf)
{
	struct rfs_buf *map = NULL;
	int ret = 0;

	if (rfs_is_node(buf->head.type))
		ret = rfs_node_map(fs, buf->off, &map);
	else if (buf->head.type == RFS_INODES)
		ret = rfs_imap_get(fs, buf->off / RFS_MAP_ENTRIES, false, &map);
	return ret ? NULL : map;
}

/*
 * Makes the maps dirty that lead to dirty blocks. Blocks come in the order in which they became
 * dirty, so that each is looked at once. If a map cannot be read now, this operation does not fail,
 * but the check-point does.
 */
void rfs_dirty_new_parents(struct rfs_fs *fs)
{
	struct rfs_list *dirty = &fs->dirty;
	bool nowait = rfs_nowait_off(fs);

	while (dirty->seen != dirty->bufs.prev) {
		struct rfs_buf *map;

		dirty->seen = dirty->seen->next;
		map = rfs_map_of_buf(fs, list_entry(dirty->seen, struct rfs_buf,
						    list));
		if (map && !map->dirty)
			rfs_buf_dirty(fs, map);
	}
	rfs_nowait_restore(fs, nowait);
}
