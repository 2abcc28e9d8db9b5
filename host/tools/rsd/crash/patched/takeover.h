/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A copy of a file system calls these instead of the kernel's own functions:
 * Kbuild renames its calls of each name here that begins with patched_.
 */
#ifndef TAKEOVER_H
#define TAKEOVER_H

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kobject.h>
#include <linux/miscdevice.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>

int patched_register_filesystem(struct file_system_type *ours);
int patched_misc_register(struct miscdevice *misc);
int patched_kobject_set_name(struct kobject *object, const char *name, ...);
struct kobject *patched_kobject_create_and_add(const char *name, struct kobject *parent);
struct kset *patched_kset_create_and_add(const char *name, const struct kset_uevent_ops *ops,
					 struct kobject *parent);
struct proc_dir_entry *patched_proc_mkdir(const char *name, struct proc_dir_entry *parent);
struct dentry *patched_debugfs_create_dir(const char *name, struct dentry *parent);
struct kmem_cache *patched___kmem_cache_create_args(const char *name, unsigned int size,
						    struct kmem_cache_args *args,
						    slab_flags_t flags);

#endif
