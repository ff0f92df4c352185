# SPDX-License-Identifier: Apache-2.0
# Finds one oneDNN: the one at XM_ONEDNN_GPU_ROOT, or what tools/build_onednn_gpu has built, or
# an installed one. Which engines it has (CPU, GPU, both) is its own word, asked again at run
# time. Sets dnnl_FOUND, and XM_ONEDNN_HAS_GPU when its GPU engine is OpenCL's.
set(XM_ONEDNN_HAS_GPU OFF)
if(DEFINED ENV{XDG_CACHE_HOME})
    set(XM_ONEDNN_BUILT $ENV{XDG_CACHE_HOME}/xemoe/onednn-gpu)
else()
    set(XM_ONEDNN_BUILT $ENV{HOME}/.cache/xemoe/onednn-gpu)
endif()
unset(dnnl_DIR CACHE) # of an earlier configure: another one may have come
if(XM_ONEDNN_GPU_ROOT)
    find_package(dnnl CONFIG REQUIRED PATHS ${XM_ONEDNN_GPU_ROOT} NO_DEFAULT_PATH)
elseif(XM_WITH_ONEDNN OR XM_WITH_ONEDNN_GPU)
    find_package(dnnl CONFIG QUIET PATHS ${XM_ONEDNN_BUILT} NO_DEFAULT_PATH)
    if(NOT dnnl_FOUND)
        find_package(dnnl CONFIG QUIET)
    endif()
endif()
if(XM_WITH_ONEDNN_GPU AND NOT dnnl_FOUND)
    message(FATAL_ERROR "XM_WITH_ONEDNN_GPU: there is no oneDNN; tools/setup --with-onednn-gpu "
            "builds one, XM_ONEDNN_GPU_ROOT names another")
endif()
if(dnnl_FOUND AND DNNL_GPU_RUNTIME STREQUAL "OCL")
    set(XM_ONEDNN_HAS_GPU ON)
endif()
if(XM_WITH_ONEDNN_GPU AND NOT XM_ONEDNN_HAS_GPU)
    message(FATAL_ERROR "${dnnl_DIR}: this oneDNN's GPU runtime is ${DNNL_GPU_RUNTIME}, "
            "XM_WITH_ONEDNN_GPU wants OCL; tools/setup --with-onednn-gpu builds one")
endif()
set(XM_ONEDNN_HAS_GROUPED OFF)
if(dnnl_FOUND)
    include(CheckSymbolExists)
    include(CMakePushCheckState)
    unset(XM_ONEDNN_DECLARES_GROUPED CACHE) # another oneDNN may have been chosen
    cmake_push_check_state(RESET)
    set(CMAKE_REQUIRED_LIBRARIES DNNL::dnnl)
    check_symbol_exists(dnnl_memory_desc_create_with_grouped_encoding dnnl.h
        XM_ONEDNN_DECLARES_GROUPED)
    cmake_pop_check_state()
    if(XM_ONEDNN_DECLARES_GROUPED)
        set(XM_ONEDNN_HAS_GROUPED ON)
    endif()
endif()
if(dnnl_FOUND)
    # An installed program finds it again where it was linked, outside the system's folders.
    set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
    message(STATUS "oneDNN ${dnnl_VERSION}: CPU engine ${DNNL_CPU_RUNTIME}, "
            "GPU engine ${DNNL_GPU_RUNTIME}, grouped memory ${XM_ONEDNN_HAS_GROUPED}")
else()
    message(STATUS "no oneDNN: its variants are left out")
endif()
