/*
 * Runs the scanner over as many arbitrary inputs as the argument says; tests/c_ext/run_sanitized builds it.
 *
 * Input and output are allocated to the byte, so that the first byte read or written beyond them is reported. The
 * inputs are the same in every run.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "scan.h"

#define SIZE_MAX_OF_INPUT 400
#define FRAMES_MAX 6

static uint64_t state = UINT64_C(0x9E3779B97F4A7C15);

static uint64_t random_below(uint64_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % bound;
}

static void require(int condition, const char *what, uint64_t input)
{
    if (!condition) {
        fprintf(stderr, "input %" PRIu64 ": %s\n", input, what);
        abort();
    }
}

/* Mostly headers that could be real, so that the scan gets far; every byte may still be anything. */
static void fill(uint8_t *bytes, uint64_t size)
{
    static const uint8_t magics[] = {0x80, 0x81, 0x82, 0x83, 0x08, 0x18};
    uint64_t position = 0;

    for (uint64_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)random_below(256);
    }
    while (position + TRICLINIUM_HEADER_SIZE <= size && random_below(16) != 0) {
        uint8_t *header = bytes + position;
        const uint64_t body_size = random_below(40);

        header[0] = magics[random_below(sizeof magics)];
        header[2] = (uint8_t)(random_below(8) == 0 ? random_below(256) : 0);
        header[3] = (uint8_t)random_below(12);
        header[4] = (uint8_t)random_below(12);
        if (random_below(16) != 0) {
            header[8] = header[9] = header[10] = 0;
            header[11] = (uint8_t)body_size;
        }
        position += TRICLINIUM_HEADER_SIZE + body_size;
    }
}

static void check(uint64_t input, uint64_t tally[4])
{
    const uint64_t size = random_below(SIZE_MAX_OF_INPUT);
    const uint64_t start = random_below(4) == 0 ? random_below(size + 1) : 0;
    const uint64_t frames_max = random_below(FRAMES_MAX + 1);
    uint8_t *const bytes = malloc(size > 0 ? size : 1);
    uint64_t *const out = malloc(frames_max > 0 ? frames_max * TRICLINIUM_FIELDS_PER_FRAME * sizeof *out : 1);

    if (bytes == NULL || out == NULL) {
        exit(2);
    }
    fill(bytes, size);
    const int64_t frames = triclinium_scan_headers(bytes, start, size, out, frames_max);

    require(frames >= TRICLINIUM_MALFORMED_LENGTHS, "an unknown code came back", input);
    require(frames <= (int64_t)frames_max, "more frames than asked for", input);
    tally[frames < 0 ? -frames : 0] += frames < 0 ? 1 : (uint64_t)frames;
    uint64_t frame_start = start;
    for (int64_t frame = 0; frame < frames; frame++) {
        const uint64_t *fields = out + frame * TRICLINIUM_FIELDS_PER_FRAME;

        require(fields[0] == bytes[frame_start], "magic is not the first byte of the frame", input);
        require(fields[6] >= frame_start + TRICLINIUM_HEADER_SIZE, "extras begin in the header", input);
        require(fields[7] >= fields[6] && fields[8] >= fields[7] && fields[9] >= fields[8], "parts overlap", input);
        require(fields[9] <= size, "the frame reaches beyond the input", input);
        frame_start = fields[9];
    }
    free(bytes);
    free(out);
}

int main(int argc, char **argv)
{
    const uint64_t inputs = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    uint64_t tally[4] = {0};

    for (uint64_t input = 0; input < inputs; input++) {
        check(input, tally);
    }
    printf("%" PRIu64 " inputs: %" PRIu64 " frames; malformed by magic %" PRIu64 ", size %" PRIu64 ", lengths %" PRIu64 "\n",
           inputs, tally[0], tally[1], tally[2], tally[3]);
    return 0;
}
