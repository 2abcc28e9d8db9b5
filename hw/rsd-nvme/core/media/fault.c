/*
 * What happens when the host cannot back the mapping of a media file.
 *
 * Tables and OOB are loaded from the mapping of the file and stored into it. If
 * the host's disk cannot read such a page, or has no room for one that is
 * stored into (in a file that shares its blocks with a copy, or has holes), the
 * process gets a SIGBUS, of which it would die, and the guest with it. Instead,
 * memory takes the place of the page: with what the file has there, if that can
 * still be read, else with zeroes, and then the page is lost. Nothing of it
 * goes to the file any more; it is counted, and those above see to the rest:
 * see look_at_faults() in front/command.c.
 *
 * A signal of another place, or of another cause, goes on to whoever had it
 * before. The drives of a process are opened and closed by one thread at a
 * time, while no other uses one.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "media.h"

static RsdMedia *watched;       /* a list */
static struct sigaction before;
static uint64_t host_page;
static __thread bool unblocked;

static void note_lost(RsdMedia *media, uint64_t off)
{
    RsdFaults *faults = &media->faults;

    if (off < media->table_bytes || faults->num_lost == RSD_LOST_PAGES) {
        faults->all_lost = true;
    } else {
        faults->lost[faults->num_lost++] = off;
    }
}

/* False if there is no memory for it. */
static bool replace_page(RsdMedia *media, uint64_t off)
{
    uint64_t bytes = media->mapped - off;
    void *page = mmap(media->base + off, host_page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

    if (page == MAP_FAILED) {
        return false;
    }
    bytes = bytes < host_page ? bytes : host_page;
    if (pread(media->locked, page, bytes, off) != (ssize_t)bytes) {
        note_lost(media, off);
    }
    media->faults.count++;
    return true;
}

/* To whoever had it before */
static void pass_on(int sig, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(sig, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(sig);
    } else {
        sigaction(sig, &before, NULL);
        raise(sig);             /* it comes when this one is over */
    }
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    const uint8_t *at = info->si_addr;
    RsdMedia *media = watched;
    int error = errno;

    while (media && (at < media->base || at >= media->base + media->mapped)) {
        media = media->next_watched;
    }
    if (!media || info->si_code != BUS_ADRERR ||
        !replace_page(media, (at - media->base) / host_page * host_page)) {
        pass_on(sig, info, context);
    }
    errno = error;
}

void rsd_media_watch(RsdMedia *media)
{
    struct sigaction act = { .sa_sigaction = on_fault,
                             .sa_flags = SA_SIGINFO };

    if (!watched) {
        host_page = getauxval(AT_PAGESZ);
        sigemptyset(&act.sa_mask);
        sigaction(SIGBUS, &act, &before);
    }
    media->next_watched = watched;
    watched = media;
    rsd_media_may_fault();
}

void rsd_media_unwatch(RsdMedia *media)
{
    RsdMedia **link = &watched;

    while (*link && *link != media) {
        link = &(*link)->next_watched;
    }
    if (!*link) {
        return;
    }
    *link = media->next_watched;
    if (!watched) {
        sigaction(SIGBUS, &before, NULL);
    }
}

void rsd_media_may_fault(void)
{
    sigset_t set;

    if (!unblocked) {
        sigemptyset(&set);
        sigaddset(&set, SIGBUS);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        unblocked = true;
    }
}

bool rsd_media_lost(const RsdMedia *media, const void *at)
{
    const RsdFaults *faults = &media->faults;
    uint64_t off = (const uint8_t *)at - media->base;

    for (uint32_t i = 0; i < faults->num_lost; i++) {
        if (off - faults->lost[i] < host_page) {
            return true;
        }
    }
    return faults->all_lost;
}
