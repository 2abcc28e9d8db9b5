/* SPDX-License-Identifier: GPL-2.0 */
/* A mounted volume has these beside the rest: its thread, quotas, counters. */
#ifndef RFSM_SUPER_H
#define RFSM_SUPER_H

#include "rfsm.h"

int rfsm_thread_start(struct rfs_sb_info *sbi);
void rfsm_thread_stop(struct rfs_sb_info *sbi);

int rfsm_quota_init(struct rfs_sb_info *sbi);
bool rfsm_may_exceed(void *dev);

int rfsm_stats_init(struct rfs_sb_info *sbi);
void rfsm_stats_exit(struct rfs_sb_info *sbi);
int rfsm_stats_module_init(void);
void rfsm_stats_module_exit(void);

#endif
