/* SPDX-License-Identifier: GPL-2.0-or-later */
/* These are traces as sources of requests. */
#ifndef RSDSIM_TRACES_H
#define RSDSIM_TRACES_H

#include "formats.h"
#include "request.h"

/*
 * Opens a trace in text. Bytes become whole logical blocks, as far as they are
 * touched. @lbas is the size of the namespace. Requests beyond it end the
 * program, unless @wrap is set, which takes addresses modulo this size. @timed
 * says that times count, and must not go back. source->close() frees it.
 */
struct source *trace_open_text(const char *path, const struct format *format,
			       uint64_t lbas, bool wrap, bool timed);

/*
 * Opens the requests of a native trace to namespace @ns of its drive, whatever
 * the drive was, for a drive of @geo. If that has no zones and the trace's
 * drive had, a zone's reset is a trim of its blocks, and other commands for
 * zones are left out. The path "-" is not possible.
 */
struct source *trace_open_native(const char *path, uint32_t ns,
				 const RsdGeometry *geo, bool wrap);

#endif
