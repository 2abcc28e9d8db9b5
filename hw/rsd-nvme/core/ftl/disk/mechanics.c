/*
 * The mechanics of a disk: where each LBA is, and how long the arm and the
 * platters take until it passes under a head. All of it is integers.
 *
 * Layout. Cylinders are numbered from the outside. They are divided into zones
 * of equally many; the tracks of a zone have equally many slots of 4 KiB, from
 * disk-outer-slots in the first zone in equal steps down to disk-inner-slots in
 * the last one. LBAs go along a track, then on to the next head, then to the
 * next cylinder. There are as many cylinders as it takes; what is left at the
 * end of the last zone is not used. Slots of a track begin at equal angles,
 * slot i of S at turn * i / S. A track begins, in slots, so much later than the
 * one before it (skew) that its first slot comes just after the head was
 * switched, or the arm has moved by a cylinder.
 *
 * Time. All platters turn together, one revolution in 60 s / disk-rpm, and are
 * at angle 0 at time 0. To get from one place to another takes, on a cylinder,
 * disk-head-switch, if the head is another one; else the seek, or, if the head
 * is another one and that takes longer, the head switch. Then the slot has to
 * come.
 *
 * Seeks. Over d of D cylinders, T being D / 3:
 *
 *     d = 1          disk-seek-min
 *     1 < d < T      min + (third - min) * sqrt((d - 1) / (T - 1))
 *     d >= T         third + (max - third) * (d - T) / (D - 1 - T)
 *
 * that is, acceleration that counts by its root, then a constant speed. A data
 * sheet has the average over all pairs of cylinders, not that of a third. With
 * many cylinders the probability of d is 2 (1 - x) / D, x being d / D; the
 * integral of the curve over it is min / 5 + third * 88 / 135 + max * 20 / 135,
 * which gives "third" for disk-seek-avg.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "disk.h"

#define NS_PER_MINUTE UINT64_C(60000000000)

/* LBAs of one track: where they are, and how many */
typedef struct Part {
    Arm at;
    uint32_t slots;             /* of the track */
    uint32_t angle;             /* of the first one: in slots of the track */
    uint64_t n;
} Part;

static uint64_t root(uint64_t n)
{
    uint64_t r = 0;

    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1) {
        if ((r + bit) * (r + bit) <= n) {
            r += bit;
        }
    }
    return r;
}

uint64_t rsd_seek_time(const Mechanics *m, uint32_t distance)
{
    uint64_t third = m->cylinders / 3, last = m->cylinders - 1;

    if (distance <= 1) {
        return distance ? m->seek_min : 0;
    }
    if (distance < third) {
        /* of the root, 16 bits behind the point */
        uint64_t part = root(((uint64_t)(distance - 1) << 32) / (third - 1));

        return m->seek_min + ((m->seek_third - m->seek_min) * part >> 16);
    }
    return m->seek_third + (m->seek_max - m->seek_third) *
                           (distance - third) / (last - third);
}

static uint64_t move_time(const Mechanics *m, Arm from, Arm to)
{
    uint32_t distance = from.cylinder > to.cylinder
                            ? from.cylinder - to.cylinder
                            : to.cylinder - from.cylinder;
    uint64_t seek = rsd_seek_time(m, distance);

    return from.head != to.head && m->head_switch > seek ? m->head_switch
                                                         : seek;
}

static const TrackZone *zone_of(const Mechanics *m, uint64_t lba)
{
    uint32_t low = 0, high = m->num_zones;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (m->zones[middle].first <= lba) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &m->zones[low];
}

/* What of n LBAs is on the track of the first one */
static Part locate(const Mechanics *m, uint64_t lba, uint64_t n)
{
    const TrackZone *z = zone_of(m, lba);
    uint64_t track = (lba - z->first) / z->slots;
    uint64_t cylinder = track / m->heads, head = track % m->heads;
    uint32_t slot = (lba - z->first) % z->slots;
    uint64_t skew = cylinder * ((m->heads - 1) * (uint64_t)z->head_skew +
                                z->cylinder_skew) + head * z->head_skew;
    uint64_t left = z->slots - slot;

    return (Part){
        .at = { (z - m->zones) * (uint64_t)m->zone_cylinders + cylinder,
                head },
        .slots = z->slots,
        .angle = (slot + skew) % z->slots,
        .n = n < left ? n : left,
    };
}

uint64_t rsd_on_track(const Mechanics *m, uint64_t lba, uint64_t n)
{
    return locate(m, lba, n).n;
}

/* ns after angle 0 */
static uint64_t angle_time(const Mechanics *m, const Part *part, uint64_t slot)
{
    return m->turn * slot / part->slots;
}

/* When the part begins to pass, if the arm sets out now. It goes there. */
static uint64_t reach(const Mechanics *m, Arm *arm, uint64_t now,
                      const Part *part, Motion *motion)
{
    uint64_t move = move_time(m, *arm, part->at);
    uint64_t want = angle_time(m, part, part->angle);
    uint64_t is = (now + move) % m->turn;
    uint64_t wait = want >= is ? want - is : want + m->turn - is;

    if (motion) {
        motion->seeks += arm->cylinder != part->at.cylinder;
        motion->seek_ns += move;
        motion->rotate_ns += wait;
    }
    *arm = part->at;
    return now + move + wait;
}

uint64_t rsd_positioning_time(const Mechanics *m, Arm arm, uint64_t now,
                              uint64_t lba)
{
    Part part = locate(m, lba, 1);

    return reach(m, &arm, now, &part, NULL) - now;
}

uint64_t rsd_pass(const Mechanics *m, Arm *arm, uint64_t now, uint64_t lba,
                  uint64_t n, Motion *motion)
{
    while (n) {
        Part part = locate(m, lba, n);
        uint64_t takes = angle_time(m, &part, part.angle + part.n) -
                         angle_time(m, &part, part.angle);

        now = reach(m, arm, now, &part, motion) + takes;
        if (motion) {
            motion->transfer_ns += takes;
        }
        lba += part.n;
        n -= part.n;
    }
    return now;
}

uint64_t rsd_passed(const Mechanics *m, Arm *arm, uint64_t now, uint64_t lba,
                    uint64_t n, uint64_t until)
{
    uint64_t done = 0;

    while (done < n && now < until) {
        Part part = locate(m, lba + done, n - done);
        uint64_t start = reach(m, arm, now, &part, NULL);
        uint64_t begin = angle_time(m, &part, part.angle);
        uint64_t end = angle_time(m, &part, part.angle + part.n);

        now = start + end - begin;
        if (until < now) {
            /* the last slot to end by then, counted from angle 0 on */
            uint64_t at = until > start ? until - start + begin : begin;

            return done + ((at + 1) * part.slots - 1) / m->turn - part.angle;
        }
        done += part.n;
    }
    return done;
}

/* Slots that pass meanwhile: all that begin before the time is over */
static uint32_t skew_of(const Mechanics *m, uint32_t slots, uint64_t time)
{
    return time ? (time * slots / m->turn + 1) % slots : 0;
}

bool rsd_mechanics_init(RsdDrive *drive, Mechanics *m, uint64_t lbas)
{
    const RsdConfig *cfg = &drive->cfg;
    uint64_t all = 0, first = 0, next;

    *m = (Mechanics){
        .turn = NS_PER_MINUTE / cfg->disk_rpm,
        .head_switch = cfg->disk_heads > 1 ? cfg->disk_head_switch_ns : 0,
        .seek_min = cfg->disk_seek_min_ns,
        .seek_third = (135 * cfg->disk_seek_avg_ns -
                       27 * cfg->disk_seek_min_ns -
                       20 * cfg->disk_seek_max_ns) / 88,
        .seek_max = cfg->disk_seek_max_ns,
        .heads = cfg->disk_heads,
        .num_zones = cfg->disk_zones,
        .zones = rsd_alloc(drive, cfg->disk_zones * sizeof(TrackZone)),
    };
    if (!m->zones) {
        return false;
    }
    /* to the next cylinder, and from the last head to the first */
    next = m->seek_min > m->head_switch ? m->seek_min : m->head_switch;
    for (uint32_t i = 0; i < m->num_zones; i++) {
        uint32_t less = cfg->disk_outer_slots - cfg->disk_inner_slots;
        uint32_t slots = cfg->disk_outer_slots;

        slots -= i ? (uint64_t)less * i / (m->num_zones - 1) : 0;
        m->zones[i] = (TrackZone){
            .slots = slots,
            .head_skew = skew_of(m, slots, m->head_switch),
            .cylinder_skew = skew_of(m, slots, next),
        };
        all += (uint64_t)slots * m->heads;
    }
    m->zone_cylinders = rsd_div_round_up(lbas, all);
    m->cylinders = m->zone_cylinders * m->num_zones;
    for (uint32_t i = 0; i < m->num_zones; i++) {
        m->zones[i].first = first;
        first += (uint64_t)m->zones[i].slots * m->heads * m->zone_cylinders;
    }
    return true;
}

void rsd_mechanics_fini(RsdDrive *drive, Mechanics *m)
{
    rsd_release(drive, m->zones, m->num_zones * sizeof(*m->zones));
    m->zones = NULL;
}
