// The C guest of the metering measurements: the same subjects as the Go one, and the tightest loop there is.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name)))

static char text[40000];
static uint32_t text_len;

static void fill_text(void) {
  static const char line[] = "the quick brown fox jumps over 1,234 lazy dogs at noon; mail fox@example.com or call 555-0199\n";
  if (text_len) return;
  while (text_len + sizeof line - 1 < sizeof text) {
    memcpy(text + text_len, line, sizeof line - 1);
    text_len += sizeof line - 1;
  }
}

EXPORT(b_tight) uint64_t b_tight(void) {
  uint64_t x = 1;
  for (uint32_t i = 0; i < 20000000; i++) { x = x * 3 + i; __asm__ volatile("" : "+r"(x)); }
  return x;
}

static uint32_t ror(uint32_t x, int n) { return x >> n | x << (32 - n); }
static const uint32_t K[64] = {
  0x428a2f98,0x71374491,0xb5c0fbcf,0xe9b5dba5,0x3956c25b,0x59f111f1,0x923f82a4,0xab1c5ed5,0xd807aa98,0x12835b01,0x243185be,0x550c7dc3,0x72be5d74,0x80deb1fe,0x9bdc06a7,0xc19bf174,
  0xe49b69c1,0xefbe4786,0x0fc19dc6,0x240ca1cc,0x2de92c6f,0x4a7484aa,0x5cb0a9dc,0x76f988da,0x983e5152,0xa831c66d,0xb00327c8,0xbf597fc7,0xc6e00bf3,0xd5a79147,0x06ca6351,0x14292967,
  0x27b70a85,0x2e1b2138,0x4d2c6dfc,0x53380d13,0x650a7354,0x766a0abb,0x81c2c92e,0x92722c85,0xa2bfe8a1,0xa81a664b,0xc24b8b70,0xc76c51a3,0xd192e819,0xd6990624,0xf40e3585,0x106aa070,
  0x19a4c116,0x1e376c08,0x2748774c,0x34b0bcb5,0x391c0cb3,0x4ed8aa4a,0x5b9cca4f,0x682e6ff3,0x748f82ee,0x78a5636f,0x84c87814,0x8cc70208,0x90befffa,0xa4506ceb,0xbef9a3f7,0xc67178f2};

static void block(uint32_t *h, const uint8_t *p) {
  uint32_t w[64];
  for (int i = 0; i < 16; i++) w[i] = (uint32_t)p[4*i] << 24 | p[4*i+1] << 16 | p[4*i+2] << 8 | p[4*i+3];
  for (int i = 16; i < 64; i++) {
    uint32_t a = ror(w[i-15],7) ^ ror(w[i-15],18) ^ w[i-15]>>3, b = ror(w[i-2],17) ^ ror(w[i-2],19) ^ w[i-2]>>10;
    w[i] = w[i-16] + a + w[i-7] + b;
  }
  uint32_t s[8]; memcpy(s, h, 32);
  for (int i = 0; i < 64; i++) {
    uint32_t t1 = s[7] + (ror(s[4],6)^ror(s[4],11)^ror(s[4],25)) + ((s[4]&s[5])^(~s[4]&s[6])) + K[i] + w[i];
    uint32_t t2 = (ror(s[0],2)^ror(s[0],13)^ror(s[0],22)) + ((s[0]&s[1])^(s[0]&s[2])^(s[1]&s[2]));
    for (int j = 7; j > 0; j--) s[j] = s[j-1];
    s[4] += t1; s[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) h[i] += s[i];
}

EXPORT(b_sha256) uint64_t b_sha256(void) {
  fill_text();
  uint32_t h[8] = {0x6a09e667,0xbb67ae85,0x3c6ef372,0xa54ff53a,0x510e527f,0x9b05688c,0x1f83d9ab,0x5be0cd19};
  for (int k = 0; k < 40; k++)
    for (uint32_t i = 0; i + 64 <= text_len; i += 64) block(h, (uint8_t *)text + i);
  return (uint64_t)h[0] << 32 | h[1];
}

static int compare(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}
EXPORT(b_sort) uint64_t b_sort(void) {
  static uint32_t v[60000];
  uint32_t x = 1;
  for (int i = 0; i < 60000; i++) v[i] = x = x * 1664525 + 1013904223;
  qsort(v, 60000, sizeof v[0], compare);
  return v[0] + ((uint64_t)v[30000] << 20);
}

EXPORT(b_words) uint64_t b_words(void) {
  fill_text();
  uint64_t n = 0;
  for (int k = 0; k < 60; k++) {
    int in = 0;
    for (uint32_t i = 0; i < text_len; i++) {
      char c = text[i];
      int space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
      n += in && space; in = !space;
    }
  }
  return n;
}

// Counts values in nested JSON by recursive descent.
static const char *value(const char *p, uint64_t *n) {
  ++*n;
  if (*p == '[' || *p == '{') {
    char close = *p == '[' ? ']' : '}';
    p++;
    while (*p && *p != close) {
      if (*p == ',' || *p == ':' || *p == ' ') { p++; continue; }
      p = value(p, n);
    }
    return *p ? p + 1 : p;
  }
  if (*p == '"') { for (p++; *p && *p != '"'; p++) if (*p == '\\') p++; return *p ? p + 1 : p; }
  while (*p && !strchr(",:]} ", *p)) p++;
  return p;
}
EXPORT(b_json) uint64_t b_json(void) {
  static char doc[60000];
  static const char one[] = "{\"id\": 17, \"name\": \"item \\\"x\\\"\", \"tags\": [\"a\", \"b\", [1, 2, 3.5e7]], \"ok\": true}";
  if (!doc[0]) {
    char *p = doc; *p++ = '[';
    for (int i = 0; i < 600; i++) { memcpy(p, one, sizeof one - 1); p += sizeof one - 1; *p++ = ','; }
    p[-1] = ']';
  }
  uint64_t n = 0;
  for (int k = 0; k < 30; k++) value(doc, &n);
  return n;
}

// A backtracking matcher for . * ^ $ and classes, after the well-known idea of matching here.
static int here(const char *re, const char *s, const char *end);
static int one(char r, char c) { return r == '.' || (r == '@' ? c >= '0' && c <= '9' : r == c); }
static int star(char r, const char *re, const char *s, const char *end) {
  do { if (here(re, s, end)) return 1; } while (s < end && one(r, *s++));
  return 0;
}
static int here(const char *re, const char *s, const char *end) {
  if (!re[0]) return 1;
  if (re[1] == '*') return star(re[0], re + 2, s, end);
  if (s < end && one(re[0], *s)) return here(re + 1, s + 1, end);
  return 0;
}
EXPORT(b_regex) uint64_t b_regex(void) {
  fill_text();
  uint64_t n = 0;
  for (int k = 0; k < 12; k++)
    for (uint32_t i = 0; i < text_len; i++) n += here("@@@-@@*9", text + i, text + text_len) + here("ex.*a.mple", text + i, text + i + 12);
  return n;
}

EXPORT(b_resize) uint64_t b_resize(void) {
  static uint8_t src[800 * 600 * 4];
  for (int y = 0; y < 600; y++) for (int x = 0; x < 800; x++) {
    uint8_t *p = src + 4 * (y * 800 + x);
    p[0] = x; p[1] = y; p[2] = x ^ y; p[3] = 255;
  }
  uint64_t check = 0;
  for (int y = 0; y < 150; y++) for (int x = 0; x < 200; x++) {
    uint32_t r = 0, g = 0, b = 0;
    for (int dy = 0; dy < 4; dy++) for (int dx = 0; dx < 4; dx++) {
      uint8_t *p = src + 4 * ((4*y + dy) * 800 + 4*x + dx);
      r += p[0]; g += p[1]; b += p[2];
    }
    check = check * 31 + r / 16 + ((uint64_t)(g / 16) << 8) + ((uint64_t)(b / 16) << 16);
  }
  return check;
}
