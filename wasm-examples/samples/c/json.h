/* json.h: enough JSON to read one object of a few known members, without memory of its own: a strict validating reader over a
 * byte range (RFC 8259; UTF-8 is checked; nesting is bounded). Values are given back as ranges of the source. */
#ifndef SAMPLES_JSON_H
#define SAMPLES_JSON_H

#include <stdint.h>

typedef struct {
    const uint8_t *at, *end;
} json_text;

typedef enum { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_kind;

typedef struct {
    json_kind kind;
    const uint8_t *from, *to; /* of a string: between the quotes, escapes as written */
} json_value;

enum { JSON_DEPTH = 64 };

/* json_member looks for a member of the object that is the whole text. It returns 1 and the value (the last one of that name),
 * 0 if the object has none, or -1 if the text is not one valid JSON object. */
int json_member(json_text text, const char *name, json_value *value);

/* json_integer reads a number that is a whole one of up to 15 digits. It returns 0 for any other value. */
int json_integer(json_value value, int64_t *n);

#endif
