// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>

#include "status.h"

static const struct {
	unsigned int status;
	const char *name;
} names[] = {
	{ 0x000, "Successful Completion" },
	{ 0x001, "Invalid Command Opcode" },
	{ 0x002, "Invalid Field in Command" },
	{ 0x003, "Command ID Conflict" },
	{ 0x004, "Data Transfer Error" },
	{ 0x005, "Commands Aborted due to Power Loss Notification" },
	{ 0x006, "Internal Error" },
	{ 0x007, "Command Abort Requested" },
	{ 0x008, "Command Aborted due to SQ Deletion" },
	{ 0x00b, "Invalid Namespace or Format" },
	{ 0x00c, "Command Sequence Error" },
	{ 0x013, "Invalid Use of Controller Memory Buffer" },
	{ 0x020, "Namespace is Write Protected" },
	{ 0x021, "Command Interrupted" },
	{ 0x022, "Transient Transport Error" },
	{ 0x080, "LBA Out of Range" },
	{ 0x081, "Capacity Exceeded" },
	{ 0x082, "Namespace Not Ready" },
	{ 0x084, "Format In Progress" },
	{ 0x109, "Invalid Log Page" },
	{ 0x180, "Conflicting Attributes" },
	{ 0x181, "Invalid Protection Information" },
	{ 0x182, "Attempted Write to Read Only Range" },
	{ 0x183, "Command Size Limit Exceeded" },
	{ 0x1b8, "Zoned Boundary Error" },
	{ 0x1b9, "Zone Is Full" },
	{ 0x1ba, "Zone Is Read Only" },
	{ 0x1bb, "Zone Is Offline" },
	{ 0x1bc, "Zone Invalid Write" },
	{ 0x1bd, "Too Many Active Zones" },
	{ 0x1be, "Too Many Open Zones" },
	{ 0x1bf, "Invalid Zone State Transition" },
	{ 0x280, "Write Fault" },
	{ 0x281, "Unrecovered Read Error" },
	{ 0x282, "End-to-end Guard Check Error" },
	{ 0x283, "End-to-end Application Tag Check Error" },
	{ 0x284, "End-to-end Reference Tag Check Error" },
	{ 0x285, "Compare Failure" },
	{ 0x286, "Access Denied" },
	{ 0x287, "Deallocated or Unwritten Logical Block" },
	{ 0x370, "Host Pathing Error" },
	{ 0x371, "Command Aborted By Host" },
	{ 0, NULL }
};

const char *nvme_status_name(unsigned int status)
{
	int i;

	for (i = 0; names[i].name; i++)
		if (names[i].status == (status & NVME_STATUS_MASK))
			return names[i].name;
	return "unknown status";
}
