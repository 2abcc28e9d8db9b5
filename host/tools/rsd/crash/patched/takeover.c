// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A module with a copy of a file system takes the place of the one that is built into the kernel:
 * mount(2) finds the copy under the same name. The built-in one keeps its names in /sys, /proc and
 * among the slab caches, so the copy gets others there.
 */
#include <linux/module.h>

#include "takeover.h"

#define NAME_BYTES 64

struct other_name {
	char text[NAME_BYTES];
};

static struct other_name other(const char *name)
{
	struct other_name found;

	snprintf(found.text, sizeof(found.text), "%s-patched", name);
	return found;
}

/* A volume that is mounted by then stays with the built-in file system. */
int patched_register_filesystem(struct file_system_type *ours)
{
	struct file_system_type *built_in = get_fs_type(ours->name);
	int err = built_in ? unregister_filesystem(built_in) : 0;

	return err ? err : register_filesystem(ours);
}

/* btrfs has one device, for its tools, which the built-in one goes on to serve. */
int patched_misc_register(struct miscdevice *misc)
{
	return 0;
}

int patched_kobject_set_name(struct kobject *object, const char *name, ...)
{
	return kobject_set_name(object, "%s", other(name).text);
}

struct kobject *patched_kobject_create_and_add(const char *name, struct kobject *parent)
{
	return kobject_create_and_add(other(name).text, parent);
}

struct kset *patched_kset_create_and_add(const char *name, const struct kset_uevent_ops *ops,
					 struct kobject *parent)
{
	return kset_create_and_add(other(name).text, ops, parent);
}

/* Only the directory of the file system itself is there already: that of a volume has a parent. */
struct proc_dir_entry *patched_proc_mkdir(const char *name, struct proc_dir_entry *parent)
{
	return proc_mkdir(parent ? name : other(name).text, parent);
}

struct dentry *patched_debugfs_create_dir(const char *name, struct dentry *parent)
{
	return debugfs_create_dir(parent ? name : other(name).text, parent);
}

struct kmem_cache *patched___kmem_cache_create_args(const char *name, unsigned int size,
						    struct kmem_cache_args *args,
						    slab_flags_t flags)
{
	return __kmem_cache_create_args(other(name).text, size, args, flags);
}
