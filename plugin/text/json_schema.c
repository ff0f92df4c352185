#include "plugin/text/grammar_parts.h"
enum xm_status xm_grammar_from_schema(const char *json, size_t n, struct xm_grammar **out,
                                      struct xm_error *err)
{ (void)json; (void)n; *out = NULL; return xm_fail(err, XM_UNSUPPORTED, "x"); }
