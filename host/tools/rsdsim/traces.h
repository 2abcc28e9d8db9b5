/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traces as sources of requests. */
#ifndef RSDSIM_TRACES_H
#define RSDSIM_TRACES_H

#include "formats.h"
#include "request.h"

/*
 * A trace in text. Bytes become whole logical blocks, as far as they are
 * touched. @lbas: of the namespace; requests beyond end the program unless
 * @wrap, which takes addresses modulo the namespace. @timed: times count, and
 * must not go back. Freed by source->close().
 */
struct source *trace_open_text(const char *path, const struct format *format,
			       uint64_t lbas, bool wrap, bool timed);

/*
 * The requests of a native trace to namespace @ns of its drive, whatever the
 * drive was, for one of @geo. If that has no zones and the trace's drive had,
 * a zone's reset is a trim of its blocks, and what else concerns zones is left
 * out. The path "-" is not possible.
 */
struct source *trace_open_native(const char *path, uint32_t ns,
				 const RsdGeometry *geo, bool wrap);

#endif
