/*
 * What the fuzzers share: the input as a row of small numbers, drives of which
 * it says what they are, and files in memory.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef RSD_FUZZ_INPUT_H
#define RSD_FUZZ_INPUT_H

#include "rsd.h"

#define PAGE 4096u

/* The input; behind its end are zeroes. */
typedef struct Input {
    const uint8_t *at, *end;
} Input;

uint8_t take8(Input *in);
uint16_t take16(Input *in);
uint32_t take32(Input *in);
/* 0 to n - 1 */
uint32_t take_below(Input *in, uint32_t n);

/* What each fuzzer is: libFuzzer calls it with an input. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * A small drive: two bytes choose its FTL and its kind, then come up to eight
 * properties with values of their own. False: there can be no such drive.
 */
bool take_config(Input *in, RsdConfig *cfg);

/* A file's name in a directory of this process in /dev/shm; kept to the end */
const char *file_in_memory(const char *name);
/* Its content is that, and nothing else. */
void file_write(const char *path, const void *data, size_t size);
/* All of a file, which has at most 64 MiB. Freed by the caller. */
uint8_t *file_read(const char *path, size_t *size);

/*
 * All that can be read of a drive is read, then something is written as far as
 * it can be: it must not matter what the drive finds. Nothing is in flight
 * afterwards.
 */
void use_all(RsdDrive *drive);
/* Carries out all events, and frees what completes. */
void drain(RsdDrive *drive);
/* One block that begins with that byte; what is refused is dropped. */
void write_block(RsdDrive *drive, uint64_t lba, uint8_t byte);
/* A file whose bytes are to change: its descriptor and its size */
int file_to_change(const char *path, uint64_t *size);

#endif
