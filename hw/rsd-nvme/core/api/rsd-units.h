/*
 * Times as people write them: 4s, 25us, 1.5ms, 477611 (ns).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_UNITS_H
#define RSD_UNITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Messages use this text. */
#define RSD_NS_FORM "a number of ns, or one with a unit: ns, us, ms or s"

/*
 * Takes all of @text: digits, with a unit also a decimal point and digits.
 * Returns false if it is anything else, no whole number of ns, or beyond 64
 * bits.
 */
static inline bool rsd_parse_ns(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        { "", 1 }, { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 },
        { "s", 1000000000 },
    };
    uint64_t number = 0, scale = 1, unit = 0;
    bool digits = false, point = false;

    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point);
         text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        digits = true;
        if (__builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number) ||
            (point && __builtin_mul_overflow(scale, UINT64_C(10), &scale))) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!strcmp(text, units[i].name)) {
            unit = units[i].ns;
        }
    }
    if (!digits || !unit || (point && !*text) ||
        __builtin_mul_overflow(number, unit, &number) || number % scale) {
        return false;
    }
    *ns = number / scale;
    return true;
}

#endif
