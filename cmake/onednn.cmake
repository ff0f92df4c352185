# SPDX-License-Identifier: Apache-2.0
# Finds one oneDNN: the one at XM_ONEDNN_GPU_ROOT, or an installed one. Which engines it has
# (CPU, GPU, both) is its own word, asked again at run time. Sets dnnl_FOUND, and
# XM_ONEDNN_HAS_GPU when its GPU engine is OpenCL's.
set(XM_ONEDNN_HAS_GPU OFF)
if(XM_WITH_ONEDNN_GPU AND XM_ONEDNN_GPU_ROOT)
    unset(dnnl_DIR CACHE) # of an earlier configure without the root
    find_package(dnnl CONFIG REQUIRED PATHS ${XM_ONEDNN_GPU_ROOT} NO_DEFAULT_PATH)
elseif(XM_WITH_ONEDNN_GPU)
    find_package(dnnl CONFIG REQUIRED)
elseif(XM_WITH_ONEDNN)
    find_package(dnnl QUIET)
endif()
if(dnnl_FOUND AND DNNL_GPU_RUNTIME STREQUAL "OCL")
    set(XM_ONEDNN_HAS_GPU ON)
endif()
if(XM_WITH_ONEDNN_GPU AND NOT XM_ONEDNN_HAS_GPU)
    message(FATAL_ERROR "${dnnl_DIR}: this oneDNN's GPU runtime is ${DNNL_GPU_RUNTIME}, "
            "XM_WITH_ONEDNN_GPU wants OCL; tools/build_onednn_gpu builds one for "
            "XM_ONEDNN_GPU_ROOT")
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
    message(STATUS "oneDNN ${dnnl_VERSION}: CPU engine ${DNNL_CPU_RUNTIME}, "
            "GPU engine ${DNNL_GPU_RUNTIME}, grouped memory ${XM_ONEDNN_HAS_GROUPED}")
else()
    message(STATUS "no oneDNN: its variants are left out")
endif()
