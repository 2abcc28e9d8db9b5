/*
 * Ranges of LBAs in a tree, to find those that overlap another one without
 * looking at all.
 *
 * The tree has a node for each LBA that ranges begin at, in order of these: so
 * it is no deeper the more ranges there are, once they begin everywhere. One of
 * the ranges is the node, and has two lists of them by age, of reads and of
 * others. A node knows of those below it, itself included, how old the oldest
 * one is, and how far they go at most. It is a treap (Aragon and Seidel,
 * "Randomized search trees", 1989): a heap by a number that is as good as
 * random, here made of the LBA, which keeps it balanced.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "ftl.h"

static uint64_t furthest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void take_in(SpanNode *node, const Span *below)
{
    if (!below) {
        return;
    }
    if (below->node.oldest < node->oldest) {
        node->oldest = below->node.oldest;
    }
    for (int i = 0; i < 2; i++) {
        node->furthest[i] = furthest(node->furthest[i],
                                     below->node.furthest[i]);
    }
}

/* What is below it has changed. True: what it knows of all has, too. */
static bool look_below(Span *span)
{
    SpanNode *node = &span->node;
    const SpanNode was = *node;

    node->oldest = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        if (node->list[i].first && node->list[i].first->order < node->oldest) {
            node->oldest = node->list[i].first->order;
        }
    }
    node->furthest[true] = node->list[false].reach;
    node->furthest[false] = furthest(node->list[false].reach,
                                     node->list[true].reach);
    take_in(node, node->left);
    take_in(node, node->right);
    return node->oldest != was.oldest ||
           node->furthest[false] != was.furthest[false] ||
           node->furthest[true] != was.furthest[true];
}

/* Divides a tree into what is before an LBA, and what is behind it. */
static void split(Span *root, uint64_t at, Span **left, Span **right)
{
    if (!root) {
        *left = *right = NULL;
        return;
    }
    if (root->from < at) {
        split(root->node.right, at, &root->node.right, right);
        *left = root;
    } else {
        split(root->node.left, at, left, &root->node.left);
        *right = root;
    }
    look_below(root);
}

/* Of two trees, all of the left one being before the right one */
static Span *merge(Span *left, Span *right)
{
    if (!left || !right) {
        return left ? left : right;
    }
    if (left->node.priority > right->node.priority) {
        left->node.right = merge(left->node.right, right);
        look_below(left);
        return left;
    }
    right->node.left = merge(left, right->node.left);
    look_below(right);
    return right;
}

/* Most are the youngest ones; those that went on are among the oldest. */
static void list_add(SpanList *list, Span *span)
{
    Span *after = list->last;

    if (after && after->order > span->order) {
        Span *behind = list->first;

        while (behind->order < span->order) {
            behind = behind->younger;
        }
        after = behind->older;
    }
    span->older = after;
    span->younger = after ? after->younger : list->first;
    *(after ? &after->younger : &list->first) = span;
    *(span->younger ? &span->younger->older : &list->last) = span;
    list->reach = furthest(list->reach, span->end);
}

static void list_remove(SpanList *list, Span *span)
{
    *(span->older ? &span->older->younger : &list->first) = span->younger;
    *(span->younger ? &span->younger->older : &list->last) = span->older;
    if (!list->first) {
        list->reach = 0;
    }
}

void rsd_span_add(Span **root, Span *span)
{
    /* No two LBAs have the same: rsd_random() takes each to another number. */
    span->node = (SpanNode){
        .priority = rsd_random(0, span->from),
        .oldest = span->order,
    };
    span->node.furthest[false] = span->end;
    span->node.furthest[true] = span->read ? 0 : span->end;
    while (*root && (*root)->node.priority > span->node.priority) {
        take_in(&(*root)->node, span);
        root = (*root)->from < span->from ? &(*root)->node.right
                                          : &(*root)->node.left;
    }
    if (*root && (*root)->from == span->from) {
        list_add(&(*root)->node.list[span->read], span);
        take_in(&(*root)->node, span);
        return;
    }
    split(*root, span->from, &span->node.left, &span->node.right);
    list_add(&span->node.list[span->read], span);
    look_below(span);
    *root = span;
}

/* True: what the root knows of all below it has changed. */
static bool take_out(Span **root, Span *span)
{
    Span *at = *root;
    SpanNode *node = &at->node;

    if (at->from != span->from) {
        if (!take_out(at->from < span->from ? &node->right : &node->left,
                      span)) {
            return false;
        }
    } else {
        list_remove(&node->list[span->read], span);
        if (!node->list[false].first && !node->list[true].first) {
            *root = merge(node->left, node->right);
            return true;
        }
        if (at == span) {
            *root = node->list[node->list[true].first != NULL].first;
            (*root)->node = *node;
        }
    }
    return look_below(*root);
}

void rsd_span_remove(Span **root, Span *span)
{
    take_out(root, span);
}

/*
 * The youngest one of a list that is older than a range and reaches it. It is
 * looked for from both ends, because most ranges are either the youngest or
 * among the oldest ones.
 */
static Span *list_find(const SpanList *list, const Span *of)
{
    Span *next = list->first, *found = list->last;

    while (next && next->order < of->order && found->order >= of->order) {
        next = next->younger;
        found = found->older;
    }
    if (next && next->order >= of->order) {
        found = next->older;
    }
    while (found && found->end <= of->from) {
        found = found->older;
    }
    return found;
}

Span *rsd_span_find(Span *root, const Span *of)
{
    while (root && root->node.oldest < of->order &&
           root->node.furthest[of->read] > of->from) {
        if (root->from < of->end) {
            Span *found = rsd_span_find(root->node.right, of), *read = NULL;

            if (found) {
                return found;
            }
            found = list_find(&root->node.list[false], of);
            if (!of->read) {
                read = list_find(&root->node.list[true], of);
            }
            if (read && (!found || read->order > found->order)) {
                found = read;
            }
            if (found) {
                return found;
            }
        }
        root = root->node.left;
    }
    return NULL;
}

Span *rsd_span_at(Span *root, uint64_t from)
{
    const Span *read, *other;

    while (root && root->from != from) {
        root = root->from < from ? root->node.right : root->node.left;
    }
    if (!root) {
        return NULL;
    }
    other = root->node.list[false].first;
    read = root->node.list[true].first;
    return (Span *)(!other || (read && read->order < other->order) ? read
                                                                   : other);
}
