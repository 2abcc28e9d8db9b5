// SPDX-License-Identifier: GPL-2.0
/*
 * Some folios of several pages have to become folios of one page. Only write(2) changes a page of a
 * large folio where it is (blocks.c). Before a mapping or an atomic write changes a page, the
 * folio's pages become folios of their own.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "rfsm.h"
#include "blocks.h"

/* Adds a page of a folio that has left the file as a folio of its own. */
static int rfsm_split_page(struct inode *inode, struct folio *old, u32 i,
			   u64 reserved)
{
	struct address_space *mapping = inode->i_mapping;
	/* Reclaim of memory must not wait for a folio that the caller has locked. */
	gfp_t gfp = mapping_gfp_constraint(mapping, ~__GFP_FS);
	struct folio *new = filemap_alloc_folio(gfp, 0);
	int ret;

	if (!new)
		return -ENOMEM;
	if (folio_test_uptodate(old))
		copy_page(folio_address(new),
			  folio_address(old) + (size_t)i * PAGE_SIZE);
	ret = filemap_add_folio(mapping, new, old->index + i, gfp);
	if (!ret) {
		/* Otherwise a newer page may have been there meanwhile. */
		if (folio_test_uptodate(old) &&
		    reserved == READ_ONCE(RFS_I(inode)->reserved))
			folio_mark_uptodate(new);
		folio_unlock(new);
	}
	folio_put(new);
	return ret == -EEXIST ? 0 : ret;
}

/* A page for which there is no memory is read again when it is needed. */
void rfsm_split(struct inode *inode, struct folio *folio)
{
	u64 reserved = READ_ONCE(RFS_I(inode)->reserved);
	u32 i, n = folio_nr_pages(folio);

	generic_error_remove_folio(inode->i_mapping, folio);
	for (i = 0; i < n; i++)
		if (rfsm_split_page(inode, folio, i, reserved))
			break;
}

/*
 * Makes sure that a folio has one page, or else makes this folio leave the file. Folios that the
 * caller has locked come before it, so that writeback does not wait for him.
 */
bool rfsm_single(struct inode *inode, struct folio *folio)
{
	struct address_space *mapping = inode->i_mapping;
	loff_t pos = folio_pos(folio), last = pos + folio_size(folio) - 1;

	if (!folio_test_large(folio))
		return true;
	if (!folio_test_dirty(folio) && !folio_test_writeback(folio)) {
		rfsm_split(inode, folio);
		folio_unlock(folio);
	} else {
		folio_unlock(folio);
		filemap_fdatawrite_range(mapping, pos, last);
		filemap_fdatawait_range_keep_errors(mapping, pos, last);
	}
	folio_put(folio);
	return false;
}
