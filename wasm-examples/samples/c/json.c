#include "json.h"

static void skip_space(json_text *t) {
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\n' || *t->at == '\r')) t->at++;
}

static int take(json_text *t, uint8_t c) {
    if (t->at == t->end || *t->at != c) return 0;
    t->at++;
    return 1;
}

static int take_word(json_text *t, const char *word) {
    for (; *word != 0; word++) {
        if (!take(t, (uint8_t)*word)) return 0;
    }
    return 1;
}

static int is_digit(json_text *t) { return t->at < t->end && *t->at >= '0' && *t->at <= '9'; }

static int take_digits(json_text *t) {
    if (!is_digit(t)) return 0;
    while (is_digit(t)) t->at++;
    return 1;
}

static int take_number(json_text *t) {
    take(t, '-');
    if (!take(t, '0') && !take_digits(t)) return 0;
    if (take(t, '.') && !take_digits(t)) return 0;
    if (take(t, 'e') || take(t, 'E')) {
        if (!take(t, '+')) take(t, '-');
        if (!take_digits(t)) return 0;
    }
    return 1;
}

/* take_utf8 takes one character of two to four bytes: shortest form, no surrogates, at most U+10FFFF. */
static int take_utf8(json_text *t) {
    uint8_t lead = *t->at++, low = 0x80, high = 0xBF;
    int more;
    if (lead >= 0xC2 && lead <= 0xDF) more = 1;
    else if (lead >= 0xE0 && lead <= 0xEF) more = 2;
    else if (lead >= 0xF0 && lead <= 0xF4) more = 3;
    else return 0;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    while (more-- > 0) {
        if (t->at == t->end || *t->at < low || *t->at > high) return 0;
        t->at++;
        low = 0x80, high = 0xBF;
    }
    return 1;
}

static int hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* take_escape takes what follows a backslash. *unit is the UTF-16 unit it stands for. */
static int take_escape(json_text *t, uint32_t *unit) {
    if (t->at == t->end) return 0;
    switch (*t->at++) {
    case '"': *unit = '"'; return 1;
    case '\\': *unit = '\\'; return 1;
    case '/': *unit = '/'; return 1;
    case 'b': *unit = '\b'; return 1;
    case 'f': *unit = '\f'; return 1;
    case 'n': *unit = '\n'; return 1;
    case 'r': *unit = '\r'; return 1;
    case 't': *unit = '\t'; return 1;
    case 'u':
        *unit = 0;
        for (int i = 0; i < 4; i++) {
            int digit = t->at < t->end ? hex_digit(*t->at) : -1;
            if (digit < 0) return 0;
            *unit = *unit << 4 | (uint32_t)digit;
            t->at++;
        }
        return 1;
    }
    return 0;
}

static int take_string(json_text *t, json_value *v) {
    uint32_t unit;
    if (!take(t, '"')) return 0;
    v->kind = JSON_STRING;
    v->from = t->at;
    while (t->at < t->end) {
        uint8_t c = *t->at;
        if (c == '"') {
            v->to = t->at++;
            return 1;
        }
        if (c < 0x20) return 0;
        if (c == '\\') {
            t->at++;
            if (!take_escape(t, &unit)) return 0;
        } else if (c < 0x80) {
            t->at++;
        } else if (!take_utf8(t)) {
            return 0;
        }
    }
    return 0;
}

/* same_text compares a string with an ASCII name, escapes resolved. */
static int same_text(json_value v, const char *name) {
    json_text t = {v.from, v.to};
    while (t.at < t.end) {
        uint32_t unit = *t.at++;
        if (unit == '\\') take_escape(&t, &unit); /* it was validated */
        if (*name == 0 || unit != (uint8_t)*name++) return 0;
    }
    return *name == 0;
}

static int take_value(json_text *t, json_value *v, int depth);

/* take_list takes the members of an object or array after its opening bracket. With a name, *found and *value become the last
 * member of that name. */
static int take_list(json_text *t, uint8_t close, int depth, const char *name, int *found, json_value *value) {
    json_value key, v;
    skip_space(t);
    if (take(t, close)) return 1;
    do {
        if (close == '}') {
            skip_space(t);
            if (!take_string(t, &key)) return 0;
            skip_space(t);
            if (!take(t, ':')) return 0;
        }
        if (!take_value(t, &v, depth)) return 0;
        if (name != 0 && same_text(key, name)) {
            *found = 1;
            *value = v;
        }
        skip_space(t);
    } while (take(t, ','));
    return take(t, close);
}

static int take_value(json_text *t, json_value *v, int depth) {
    skip_space(t);
    if (t->at == t->end || depth >= JSON_DEPTH) return 0;
    v->from = t->at;
    int ok = 0;
    switch (*t->at) {
    case '"': return take_string(t, v);
    case '{': t->at++; v->kind = JSON_OBJECT; ok = take_list(t, '}', depth + 1, 0, 0, 0); break;
    case '[': t->at++; v->kind = JSON_ARRAY; ok = take_list(t, ']', depth + 1, 0, 0, 0); break;
    case 't': v->kind = JSON_BOOL; ok = take_word(t, "true"); break;
    case 'f': v->kind = JSON_BOOL; ok = take_word(t, "false"); break;
    case 'n': v->kind = JSON_NULL; ok = take_word(t, "null"); break;
    default: v->kind = JSON_NUMBER; ok = take_number(t); break;
    }
    v->to = t->at;
    return ok;
}

int json_member(json_text text, const char *name, json_value *value) {
    int found = 0;
    skip_space(&text);
    if (!take(&text, '{') || !take_list(&text, '}', 1, name, &found, value)) return -1;
    skip_space(&text);
    return text.at == text.end ? found : -1;
}

int json_integer(json_value value, int64_t *n) {
    if (value.kind != JSON_NUMBER) return 0;
    const uint8_t *p = value.from;
    int negative = *p == '-';
    if (negative) p++;
    if (value.to - p > 15) return 0;
    *n = 0;
    for (; p < value.to; p++) {
        if (*p < '0' || *p > '9') return 0;
        *n = *n * 10 + (*p - '0');
    }
    if (negative) *n = -*n;
    return 1;
}
