/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cli/serve.h"

int
xm_serve(struct xm_serve_args *a)
{
    (void)a;
    return xm_cli_usage(
        "this xemoe was built without libmicrohttpd, which 'xemoe serve' needs");
}
