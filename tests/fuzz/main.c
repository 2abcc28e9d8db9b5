/*
 * Runs a fuzzer on inputs that are known, without the library that finds new
 * ones: each argument is a file, in which each line is an input in hexadecimal.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "input.h"

/* Bytes of a line, whose text is lost. -1: it is none. */
static long from_hex(char *line)
{
    long n = 0;
    char *at = line;

    for (; isxdigit(at[0]) && isxdigit(at[1]); at += 2) {
        char byte[3] = { at[0], at[1] };

        line[n++] = strtoul(byte, NULL, 16);
    }
    return *at == '\n' || !*at ? n : -1;
}

int main(int argc, char **argv)
{
    unsigned long inputs = 0;

    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "r");
        char *line = NULL;
        size_t room = 0;

        if (!file) {
            perror(argv[i]);
            return 1;
        }
        while (getline(&line, &room, file) > 0) {
            long n = line[0] == '#' ? 0 : from_hex(line);
            uint8_t *input;

            if (n < 0) {
                fprintf(stderr, "%s: line %lu is not hexadecimal\n", argv[i],
                        inputs + 1);
                return 1;
            }
            /* of its own size, so that reads behind its end are seen */
            input = malloc(n ? n : 1);
            for (long k = 0; k < n; k++) {
                input[k] = line[k];
            }
            LLVMFuzzerTestOneInput(input, n);
            free(input);
            inputs++;
        }
        free(line);
        fclose(file);
    }
    printf("%lu inputs\n", inputs);
    return 0;
}
