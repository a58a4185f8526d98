/* Bulk decoding of memcached binary headers: no allocation, no Python, no errno, no state. */

#ifndef TRICLINIUM_SCAN_H
#define TRICLINIUM_SCAN_H

#include <stdint.h>

#define TRICLINIUM_HEADER_SIZE 24
#define TRICLINIUM_FRAME_SIZE_MAX (UINT64_C(30) * 1024 * 1024)
#define TRICLINIUM_FIELDS_PER_FRAME 10

/* Why the first frame cannot be one. */
#define TRICLINIUM_MALFORMED_MAGIC (-1)
#define TRICLINIUM_MALFORMED_SIZE (-2)
#define TRICLINIUM_MALFORMED_LENGTHS (-3)

/*
 * Decodes the headers of the whole frames in buffer[start, end), oldest first, at most frames_max of them.
 *
 * Writes for each frame TRICLINIUM_FIELDS_PER_FRAME numbers to out: magic, opcode, status (a request's vbucket),
 * datatype, opaque, cas, extras_start, key_start, value_start, frame_end. Offsets count from buffer; framing extras
 * lie between the end of the header and extras_start.
 *
 * The caller vouches for start <= end, for end readable bytes at buffer, and for room for frames_max frames at out.
 * The bytes themselves may be anything.
 *
 * Returns the number of frames, or a TRICLINIUM_MALFORMED_ code if the first frame is impossible; an impossible frame
 * further on ends the list before it. A trailing partial frame is left alone, but its header is checked as far as it
 * is there.
 *
 * Source: kv_engine docs/BinaryProtocol.md, "Packet Structure".
 */
int64_t triclinium_scan_headers(
    const uint8_t *buffer, uint64_t start, uint64_t end, uint64_t *out, uint64_t frames_max);

#endif
