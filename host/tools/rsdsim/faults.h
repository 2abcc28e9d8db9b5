/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * These are faults by rule: the drive's scenario.h, and a list of the faults
 * that happened.
 */
#ifndef RSDSIM_FAULTS_H
#define RSDSIM_FAULTS_H

#include "rsd.h"

/*
 * Puts the rules of the file @path in force, and writes each fault as a line of
 * the file @log, unless that is NULL. Ends the program if something is wrong.
 */
void faults_open(struct RsdDrive *drive, const char *path, const char *log);
/* This comes after the last event. */
void faults_close(void);

#endif
