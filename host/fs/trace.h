/* SPDX-License-Identifier: GPL-2.0 */
/* These are the events in /sys/kernel/tracing/events/rfs. The table of README.md lists them. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rfs

#if !defined(RFS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RFS_TRACE_H

#include <linux/kdev_t.h>
#include <linux/tracepoint.h>

#define RFS_DEV_FORMAT	"%d:%d "

TRACE_EVENT(rfs_append,
	TP_PROTO(dev_t dev, u32 zone, u32 blocks, int data),
	TP_ARGS(dev, zone, blocks, data),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, zone)
		__field(u32, blocks)
		__field(int, data)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->zone = zone;
		__entry->blocks = blocks;
		__entry->data = data;
	),
	TP_printk(RFS_DEV_FORMAT "zone %u blocks %u data %d",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->zone, __entry->blocks, __entry->data)
);

TRACE_EVENT(rfs_reset,
	TP_PROTO(dev_t dev, u32 zone, int error),
	TP_ARGS(dev, zone, error),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, zone)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->zone = zone;
		__entry->error = error;
	),
	TP_printk(RFS_DEV_FORMAT "zone %u error %d",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->zone, __entry->error)
);

TRACE_EVENT(rfs_victim,
	TP_PROTO(dev_t dev, u32 zone, u32 live, u32 blocks),
	TP_ARGS(dev, zone, live, blocks),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, zone)
		__field(u32, live)
		__field(u32, blocks)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->zone = zone;
		__entry->live = live;
		__entry->blocks = blocks;
	),
	TP_printk(RFS_DEV_FORMAT "zone %u live %u of %u blocks",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->zone, __entry->live,
		  __entry->blocks)
);

TRACE_EVENT(rfs_checkpoint,
	TP_PROTO(dev_t dev, u64 number, int cause, u32 dirty, u64 ns, u64 held,
		 int error),
	TP_ARGS(dev, number, cause, dirty, ns, held, error),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, number)
		__field(int, cause)
		__field(u32, dirty)
		__field(u64, ns)
		__field(u64, held)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->number = number;
		__entry->cause = cause;
		__entry->dirty = dirty;
		__entry->ns = ns;
		__entry->held = held;
		__entry->error = error;
	),
	TP_printk(RFS_DEV_FORMAT "number %llu cause %s dirty %u ns %llu held %llu error %d",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->number,
		  __print_symbolic(__entry->cause,
				   { RFSM_CP_SYNC, "sync" },
				   { RFSM_CP_INTERVAL, "interval" },
				   { RFSM_CP_BOUND, "bound" },
				   { RFSM_CP_ROOM, "room" },
				   { RFSM_CP_UNMOUNT, "unmount" }),
		  __entry->dirty, __entry->ns, __entry->held, __entry->error)
);

TRACE_EVENT(rfs_recovery,
	TP_PROTO(dev_t dev, u64 pages, u64 records, u64 applied),
	TP_ARGS(dev, pages, records, applied),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, pages)
		__field(u64, records)
		__field(u64, applied)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->pages = pages;
		__entry->records = records;
		__entry->applied = applied;
	),
	TP_printk(RFS_DEV_FORMAT "pages read %llu records %llu pages applied %llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->pages, __entry->records,
		  __entry->applied)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
