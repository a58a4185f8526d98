#include "scan.h"

/* Bytes are joined after widening, so no shift reaches a sign bit and no alignment matters. */

static uint64_t read_u16(const uint8_t *bytes)
{
    return (uint64_t)bytes[0] << 8 | bytes[1];
}

static uint64_t read_u32(const uint8_t *bytes)
{
    return read_u16(bytes) << 16 | read_u16(bytes + 2);
}

static uint64_t read_u64(const uint8_t *bytes)
{
    return read_u32(bytes) << 32 | read_u32(bytes + 4);
}

static int is_flexible(uint8_t magic)
{
    return magic == 0x08 || magic == 0x18;
}

static int is_plain(uint8_t magic)
{
    return magic >= 0x80 && magic <= 0x83;
}

int64_t triclinium_scan_headers(
    const uint8_t *buffer, uint64_t start, uint64_t end, uint64_t *out, uint64_t frames_max)
{
    uint64_t frame_start = start;
    uint64_t frames = 0;
    int64_t malformed = 0;

    while (frames < frames_max && frame_start < end) {
        const uint8_t *header = buffer + frame_start;
        const uint64_t available = end - frame_start;
        const int flexible = is_flexible(header[0]);

        if (!flexible && !is_plain(header[0])) {
            malformed = TRICLINIUM_MALFORMED_MAGIC;
            break;
        }
        if (available < TRICLINIUM_HEADER_SIZE) {
            break;
        }

        /* Each length has at most 32 bits, so none of the sums below can overflow 64. */
        const uint64_t framing_size = flexible ? header[2] : 0;
        const uint64_t key_size = flexible ? header[3] : read_u16(header + 2);
        const uint64_t extras_size = header[4];
        const uint64_t body_size = read_u32(header + 8);

        if (TRICLINIUM_HEADER_SIZE + body_size > TRICLINIUM_FRAME_SIZE_MAX) {
            malformed = TRICLINIUM_MALFORMED_SIZE;
            break;
        }
        if (framing_size + extras_size + key_size > body_size) {
            malformed = TRICLINIUM_MALFORMED_LENGTHS;
            break;
        }
        if (TRICLINIUM_HEADER_SIZE + body_size > available) {
            break;
        }

        /* The whole frame lies before end, so these offsets are at most end. */
        const uint64_t extras_start = frame_start + TRICLINIUM_HEADER_SIZE + framing_size;
        const uint64_t frame_end = frame_start + TRICLINIUM_HEADER_SIZE + body_size;

        out[0] = header[0];
        out[1] = header[1];
        out[2] = read_u16(header + 6);
        out[3] = header[5];
        out[4] = read_u32(header + 12);
        out[5] = read_u64(header + 16);
        out[6] = extras_start;
        out[7] = extras_start + extras_size;
        out[8] = extras_start + extras_size + key_size;
        out[9] = frame_end;
        out += TRICLINIUM_FIELDS_PER_FRAME;
        frames += 1;
        frame_start = frame_end;
    }

    return frames > 0 ? (int64_t)frames : malformed;
}
