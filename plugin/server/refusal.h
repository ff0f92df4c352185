/* SPDX-License-Identifier: Apache-2.0
 *
 * A refusal of a request: the HTTP status, the wrong field, a code for programs, and a sentence for
 * people.
 */
#ifndef XM_PLUGIN_SERVER_REFUSAL_H
#define XM_PLUGIN_SERVER_REFUSAL_H

#include <yyjson.h>

#include "runtime/util/status.h"
#include "runtime/util/strbuf.h"
#include "runtime/util/utf8.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_exchange;

struct xm_refusal {
    int status;                /* HTTP status; 0: nothing is refused */
    char param[XM_UTF8_SHOWN]; /* name of the wrong field; "": none */
    const char *code;          /* static; NULL: none             */
    char text[XM_ERROR_TEXT];
};

/* The JSON forms of errors that clients expect. */
enum xm_error_form { XM_ERRORS_OPENAI, XM_ERRORS_ANTHROPIC };

/* Stores a refusal unless one is stored already. param, code NULL: none. Returns false. */
bool xm_refuse(struct xm_refusal *r, int status, const char *param, const char *code,
               const char *fmt, ...) XM_PRINTF(5, 6);
/* As xm_refuse, for an error of other code; paths in its sentence are shortened. */
bool xm_refuse_for(struct xm_refusal *r, const struct xm_error *why);
bool xm_refuse_at(struct xm_refusal *r, const char *param, const char *code,
                  const struct xm_error *why);
/* Refuses a value with status 400: "'max_tokens' is -5, expected a whole number from 1 on". v NULL:
 * the value is missing. */
bool xm_refuse_value(struct xm_refusal *r, const char *param, yyjson_val *v,
                     const char *expected);
/* Returns the place of a value in the body: "messages[2].content". */
struct xm_shown xm_place(const char *fmt, ...) XM_PRINTF(1, 2);
/* Returns the HTTP status for an error. */
int xm_status_of_http(enum xm_status status);

/* Appends the refusal as JSON. */
void xm_refusal_print(const struct xm_refusal *r, enum xm_error_form form,
                      struct xm_strbuf *out);
/* Answers the exchange with the refusal, in the form of its route. Takes the lock. */
void xm_refusal_answer(const struct xm_refusal *r, struct xm_exchange *x);

#ifdef __cplusplus
}
#endif
#endif
