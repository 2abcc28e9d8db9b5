/*
 * Ranges of LBAs in a tree, to find those that overlap another one without
 * looking at all.
 *
 * The tree is in order of where ranges begin, of equal ones in order of age. A
 * node knows of those below it, itself included, how old the oldest one is, and
 * how far they go. It is a treap (Aragon and Seidel, "Randomized search trees",
 * 1989): a heap by a number that is as good as random, here made of the order,
 * which keeps it balanced.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "ftl.h"

/* Is a before b in the tree? */
static bool before(const Span *a, const Span *b)
{
    return a->from != b->from ? a->from < b->from : a->order < b->order;
}

/* Multiplied by 2^64 divided by the golden ratio (Knuth, volume 3, 6.4) */
static uint64_t priority(const Span *span)
{
    return (span->order + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void take_in(Span *span, const Span *below)
{
    if (!below) {
        return;
    }
    if (below->oldest < span->oldest) {
        span->oldest = below->oldest;
    }
    for (int i = 0; i < 2; i++) {
        if (below->furthest[i] > span->furthest[i]) {
            span->furthest[i] = below->furthest[i];
        }
    }
}

/* What is below it has changed. */
static void look_below(Span *span)
{
    span->oldest = span->order;
    span->furthest[false] = span->end;
    span->furthest[true] = span->read ? 0 : span->end;
    take_in(span, span->left);
    take_in(span, span->right);
}

/* Divides a tree into what is before a range, and what is not. */
static void split(Span *root, const Span *at, Span **left, Span **right)
{
    if (!root) {
        *left = *right = NULL;
        return;
    }
    if (before(root, at)) {
        split(root->right, at, &root->right, right);
        *left = root;
    } else {
        split(root->left, at, left, &root->left);
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
    if (priority(left) > priority(right)) {
        left->right = merge(left->right, right);
        look_below(left);
        return left;
    }
    right->left = merge(left, right->left);
    look_below(right);
    return right;
}

void rsd_span_add(Span **root, Span *span)
{
    span->left = span->right = NULL;
    look_below(span);
    while (*root && priority(*root) > priority(span)) {
        take_in(*root, span);
        root = before(*root, span) ? &(*root)->right : &(*root)->left;
    }
    split(*root, span, &span->left, &span->right);
    look_below(span);
    *root = span;
}

void rsd_span_remove(Span **root, Span *span)
{
    Span *node = *root;

    if (node == span) {
        *root = merge(span->left, span->right);
        return;
    }
    rsd_span_remove(before(node, span) ? &node->right : &node->left, span);
    if (node->oldest == span->order || node->furthest[false] == span->end ||
        node->furthest[true] == span->end) {
        look_below(node);       /* else it knew nothing by this one */
    }
}

Span *rsd_span_find(Span *root, const Span *of)
{
    while (root && root->oldest < of->order &&
           root->furthest[of->read] > of->from) {
        if (root->from < of->end) {
            Span *found = rsd_span_find(root->right, of);

            if (found) {
                return found;
            }
            if (root->order < of->order && root->end > of->from &&
                !(of->read && root->read)) {
                return root;
            }
        }
        root = root->left;
    }
    return NULL;
}

Span *rsd_span_at(Span *root, uint64_t from)
{
    Span *found = NULL;

    while (root) {
        if (root->from < from) {
            root = root->right;
        } else {
            found = root->from == from ? root : found;
            root = root->left;
        }
    }
    return found;
}
