/* SPDX-License-Identifier: Apache-2.0
 *
 * The formats of strings as regular expressions, which json_pattern.c reads.
 *
 * An expression matches only strings that the standard allows, but possibly not all of them: leap
 * seconds, lower-case T and Z, and quoted local parts of mail addresses are left out, because many
 * programs that read such strings refuse them.
 */
#include <string.h>

#include "plugin/text/json_schema_parts.h"

/* ---- dates and times (RFC 3339) ---------------------------------------------------- */

#define YEAR "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
#define LEAP "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
#define MONTHS                                                                           \
    "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[" \
    "1-9]|1[0-9]|2[0-8])"
#define DATE "(" YEAR "-(" MONTHS ")|" LEAP "-02-29)"
#define TIME                                                                             \
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):" \
    "[0-5][0-9])"
#define DAYS  "([0-9]+D|[0-9]+M([0-9]+D)?|[0-9]+Y([0-9]+M([0-9]+D)?)?)"
#define HOURS "T([0-9]+S|[0-9]+M([0-9]+S)?|[0-9]+H([0-9]+M([0-9]+S)?)?)"

/* ---- addresses --------------------------------------------------------------------- */

#define HEX   "[0-9a-fA-F]"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4  OCTET "(\\." OCTET "){3}"
#define GROUP "[0-9a-fA-F]{1,4}"
#define IPV6                                                                             \
    "((" GROUP ":){7}" GROUP "|(" GROUP ":){1,7}:|(" GROUP ":){1,6}:" GROUP "|(" GROUP   \
    ":){1,5}(:" GROUP "){1,2}|(" GROUP ":){1,4}(:" GROUP "){1,3}|(" GROUP                \
    ":){1,3}(:" GROUP "){1,4}|(" GROUP ":){1,2}(:" GROUP "){1,5}|" GROUP ":(:" GROUP     \
    "){1,6}|:((:" GROUP "){1,7}|:)|(" GROUP ":){6}" IPV4 "|::(" GROUP ":){0,5}" IPV4     \
    "|(" GROUP ":){1,5}:" IPV4 "|(" GROUP ":){1,4}:" GROUP ":" IPV4 "|(" GROUP           \
    ":){1,3}:(" GROUP ":){1,2}" IPV4 "|(" GROUP ":){1,2}:(" GROUP ":){1,3}" IPV4         \
    "|" GROUP "::(" GROUP ":){1,4}" IPV4 ")"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define ATOM  "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"

/* ---- URIs (RFC 3986) and IRIs (RFC 3987); `X`: more characters ---------------------- */

#define PLAIN      "A-Za-z0-9._~!$&'()*+,;="
#define ESCAPE     "%[0-9A-Fa-f]{2}"
#define PCHARS(X)  "([" PLAIN ":@" X "-]|" ESCAPE ")"
#define SCHEME     "[A-Za-z][A-Za-z0-9+.-]*:"
#define LITERAL_IP "\\[(" IPV6 "|[vV]" HEX "+\\.[" PLAIN ":-]+)\\]"
#define AUTHORITY(X)                                                                     \
    "//(([" PLAIN ":" X "-]|" ESCAPE ")*@)?(" LITERAL_IP "|([" PLAIN X "-]|" ESCAPE      \
    ")*)(:[0-9]*)?(/" PCHARS(X) "*)*"
#define SEGMENTS(X) PCHARS(X) "+(/" PCHARS(X) "*)*"
#define TAIL(X)                                                                          \
    "(\\?([" PLAIN ":@/?" X "-]|" ESCAPE ")*)?(#([" PLAIN ":@/?" X "-]|" ESCAPE ")*)?"
#define ROOTED(X)   "(" AUTHORITY(X) "|/(" SEGMENTS(X) ")?|)"
#define ABSOLUTE(X) SCHEME "(" ROOTED(X) "|" SEGMENTS(X) ")" TAIL(X)
/* A URI reference. Without a scheme, the first segment must not have a colon. */
#define REFERENCE(X)                                                                     \
    "((" SCHEME ")?" ROOTED(X) "|" SCHEME SEGMENTS(X) "|([" PLAIN "@" X "-]|" ESCAPE     \
                                                      ")+(/" PCHARS(X) "*)*)" TAIL(X)
#define UNICODE                                                                          \
    "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef\\u{10000}-\\u{1fffd}\\u{20000}-"      \
    "\\u{2fffd}\\u{30000}-\\u{3fffd}"

/* ---- JSON pointers (RFC 6901), templates (RFC 6570) --------------------------------- */

#define POINTER  "(/([^/~]|~[01])*)*"
#define NAME     "([A-Za-z0-9_]|" ESCAPE ")"
#define VARIABLE NAME "(\\.?" NAME ")*(:[1-9][0-9]{0,3}|\\*)?"
#define TEMPLATE                                                                         \
    "([!#$&(-;=?-\\[\\]_a-z~" UNICODE "]|" ESCAPE "|\\{[+#./;?&]?" VARIABLE              \
    "(," VARIABLE ")*\\})*"

static const struct format {
    const char *name, *pattern;
    /* used if there is a minLength or maxLength; NULL: `pattern` */
    const char *of_length;
} formats[] = {
    /* clang-format off */
    { "date",                  "^" DATE "$", NULL },
    { "time",                  "^" TIME "$", NULL },
    { "date-time",             "^" DATE "T" TIME "$", NULL },
    { "duration",              "^P([0-9]+W|" DAYS "(" HOURS ")?|" HOURS ")$", NULL },
    { "uuid",                  "^" HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}$", NULL },
    { "ipv4",                  "^" IPV4 "$", NULL },
    { "ipv6",                  "^" IPV6 "$", NULL },
    { "email",                 "^" ATOM "(\\." ATOM ")*@" LABEL "(\\." LABEL ")*$", NULL },
    { "hostname",              "^" LABEL "(\\." LABEL "){0,3}$", NULL },
    { "uri",                   "^" ABSOLUTE("") "$",
      "^https://[" PLAIN "/?-]+$|^http://[" PLAIN "/?-]+$" },
    { "uri-reference",         "^" REFERENCE("") "$", NULL },
    { "iri",                   "^" ABSOLUTE(UNICODE) "$", NULL },
    { "iri-reference",         "^" REFERENCE(UNICODE) "$", NULL },
    { "uri-template",          "^" TEMPLATE "$", NULL },
    { "json-pointer",          "^" POINTER "$", NULL },
    { "relative-json-pointer", "^(0|[1-9][0-9]*)(#|" POINTER ")$", NULL },
    /* clang-format on */
};

/* Formats of the standard that are not supported and refused. Unknown formats are annotations. */
static const char *const refused_formats[] = {"idn-email", "idn-hostname", "regex"};

const char *
xm_schema_format(struct xm_schema *s, const struct xm_applied *a, bool has_length)
{
    yyjson_val *format = yyjson_obj_get(a->value, "format");
    const char *name = yyjson_get_str(format);
    if (format && !name)
        xm_schema_expected(s, xm_schema_path(s, a->path, "format"), "a string", format);
    for (size_t i = 0; name && i < XM_ARRAY_LEN(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return has_length && formats[i].of_length ? formats[i].of_length
                                                      : formats[i].pattern;
    for (size_t i = 0; name && i < XM_ARRAY_LEN(refused_formats); i++)
        if (strcmp(refused_formats[i], name) == 0)
            xm_schema_fail(s, XM_UNSUPPORTED, xm_schema_path(s, a->path, "format"),
                           "the format '%s' is not supported", name);
    return NULL;
}
