/* wordcount.c: a command that counts the words, lines and bytes of a text. It knows nothing of taskhost: the payload is its
 * standard input, the result its standard output. Counts agree with `LC_ALL=C.UTF-8 wc`; see ../go/main.go for what a word is. */
#include <inttypes.h>
#include <stdio.h>

int main(void) {
    static unsigned char buf[32 * 1024];
    uint64_t words = 0, lines = 0, bytes = 0;
    int word = 0;
    size_t n;
    while ((n = fread(buf, 1, sizeof buf, stdin)) > 0) {
        bytes += n;
        for (size_t i = 0; i < n; i++) {
            int space = buf[i] == ' ' || (buf[i] >= '\t' && buf[i] <= '\r');
            lines += buf[i] == '\n';
            words += !space && !word;
            word = !space;
        }
    }
    if (ferror(stdin)) {
        perror("stdin");
        return 75; /* EX_TEMPFAIL: try again */
    }
    printf("{\"words\":%" PRIu64 ",\"lines\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", words, lines, bytes);
    return fflush(stdout) == 0 ? 0 : 75;
}
