/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * These are the kernel's lists (include/linux/list.h), as far as the core and its tests use them.
 */
#ifndef RFS_LIST_H
#define RFS_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add(struct list_head *entry, struct list_head *list)
{
	entry->next = list->next;
	entry->prev = list;
	list->next->prev = entry;
	list->next = entry;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	list_add(entry, list->prev);
}

static inline void list_del(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
}

static inline void list_move_tail(struct list_head *entry, struct list_head *list)
{
	list_del(entry);
	list_add_tail(entry, list);
}

#define list_entry(at, type, member)					\
	((type *)((char *)(at) - offsetof(type, member)))
#define list_first_entry(list, type, member)				\
	list_entry((list)->next, type, member)
#define list_next_entry(entry, member)					\
	list_entry((entry)->member.next, __typeof__(*(entry)), member)
#define list_entry_is_head(entry, list, member)				\
	(&(entry)->member == (list))
#define list_for_each_entry(entry, list, member)			\
	for ((entry) = list_first_entry(list, __typeof__(*(entry)), member);	\
	     !list_entry_is_head(entry, list, member);			\
	     (entry) = list_next_entry(entry, member))
#define list_for_each_entry_safe(entry, following, list, member)	\
	for ((entry) = list_first_entry(list, __typeof__(*(entry)), member),	\
	     (following) = list_next_entry(entry, member);		\
	     !list_entry_is_head(entry, list, member);			\
	     (entry) = (following),					\
	     (following) = list_next_entry(following, member))

#endif
