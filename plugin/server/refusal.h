/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a request is not answered as it asks: HTTP's status, the field that is wrong, a code for
 * programs, and a sentence for people.
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
    int status;                /* of HTTP; 0: nothing is refused */
    char param[XM_UTF8_SHOWN]; /* "": no field is to blame       */
    const char *code;          /* static; NULL: none             */
    char text[XM_ERROR_TEXT];
};

/* The shapes of errors that clients read. */
enum xm_error_form { XM_ERRORS_OPENAI, XM_ERRORS_ANTHROPIC };

/* Records the first refusal. param, code: NULL: none. Returns false. */
bool xm_refuse(struct xm_refusal *r, int status, const char *param, const char *code,
               const char *fmt, ...) XM_PRINTF(5, 6);
/* The same for a failure below; paths in its sentence are cut. */
bool xm_refuse_for(struct xm_refusal *r, const struct xm_error *why);
bool xm_refuse_at(struct xm_refusal *r, const char *param, const char *code,
                  const struct xm_error *why);
/* 400 for a value; NULL: it is missing. "'max_tokens' is -5, expected a whole number from 1 on" */
bool xm_refuse_value(struct xm_refusal *r, const char *param, yyjson_val *v,
                     const char *expected);
/* Where a value is in the body: "messages[2].content". */
struct xm_shown xm_place(const char *fmt, ...) XM_PRINTF(1, 2);
/* HTTP's status for a failure. */
int xm_status_of_http(enum xm_status status);

/* Appends the refusal as JSON. */
void xm_refusal_print(const struct xm_refusal *r, enum xm_error_form form,
                      struct xm_strbuf *out);
/* Answers the exchange with it, in the form of its route. Takes the lock. */
void xm_refusal_answer(const struct xm_refusal *r, struct xm_exchange *x);

#ifdef __cplusplus
}
#endif
#endif
