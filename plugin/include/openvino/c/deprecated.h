/* SPDX-License-Identifier: Apache-2.0
 *
 * Macros that mark deprecated functions.
 */
#ifndef OPENVINO_C_DEPRECATED_H
#define OPENVINO_C_DEPRECATED_H

#if defined(__GNUC__)
#define OPENVINO_DEPRECATED(msg) __attribute__((deprecated(msg)))
#define OPENVINO_SUPPRESS_DEPRECATED_START                                               \
    _Pragma("GCC diagnostic push")                                                       \
        _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
#define OPENVINO_SUPPRESS_DEPRECATED_END _Pragma("GCC diagnostic pop")
#else
#define OPENVINO_DEPRECATED(msg)
#define OPENVINO_SUPPRESS_DEPRECATED_START
#define OPENVINO_SUPPRESS_DEPRECATED_END
#endif
#define OPENVINO_ENUM_DEPRECATED(msg) OPENVINO_DEPRECATED(msg)

#endif
