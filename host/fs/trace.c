// SPDX-License-Identifier: GPL-2.0
/* This file defines the trace events; trace.h has their fields. */
#include "rfsm.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

void rfsm_victim(void *p, u32 zone, u32 live, u32 cap)
{
	const struct rfsm_dev *dev = p;

	trace_rfs_victim(dev->bdev->bd_dev, zone, live, cap);
}
