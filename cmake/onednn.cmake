# SPDX-License-Identifier: Apache-2.0
# Finds a oneDNN, unless both XM_WITH_ONEDNN and XM_WITH_ONEDNN_GPU are off: the one at
# XM_ONEDNN_GPU_ROOT, or at dnnl_DIR, or the one that tools/build_onednn_gpu has built, or an
# installed one. Its own package says which engines it has (CPU, GPU, both); the program asks again
# at run time. Sets dnnl_FOUND, and XM_ONEDNN_HAS_GPU if its GPU engine uses OpenCL.
set(XM_ONEDNN_HAS_GPU OFF)
set(dnnl_FOUND FALSE)

# The same folder as in tools/build_onednn_gpu: an empty variable counts as unset.
if(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(XM_ONEDNN_BUILT "$ENV{XDG_CACHE_HOME}/xemoe/onednn-gpu")
elseif(NOT "$ENV{HOME}" STREQUAL "")
    set(XM_ONEDNN_BUILT "$ENV{HOME}/.cache/xemoe/onednn-gpu")
else()
    set(XM_ONEDNN_BUILT "${PROJECT_SOURCE_DIR}/build/.cache/xemoe/onednn-gpu")
endif()

# find_package stores its result in dnnl_DIR. A stored result is dropped and looked for again, since
# another oneDNN may have been installed; a folder that the user gives stays.
if(NOT dnnl_DIR OR "${dnnl_DIR}" STREQUAL "${XM_ONEDNN_FOUND_DIR}")
    unset(dnnl_DIR CACHE)
endif()
set(XM_ONEDNN_GIVEN_DIR "${dnnl_DIR}")
if(NOT XM_WITH_ONEDNN AND NOT XM_WITH_ONEDNN_GPU)
    # Without oneDNN.
elseif(XM_ONEDNN_GPU_ROOT)
    cmake_path(IS_PREFIX XM_ONEDNN_GPU_ROOT "${XM_ONEDNN_GIVEN_DIR}" NORMALIZE XM_ONEDNN_SAME)
    if(XM_ONEDNN_GIVEN_DIR AND NOT XM_ONEDNN_SAME)
        message(FATAL_ERROR "XM_ONEDNN_GPU_ROOT names ${XM_ONEDNN_GPU_ROOT}, dnnl_DIR "
                "${XM_ONEDNN_GIVEN_DIR}: give one of them (-U takes the other back)")
    endif()
    unset(dnnl_DIR CACHE)
    find_package(dnnl CONFIG REQUIRED PATHS "${XM_ONEDNN_GPU_ROOT}" NO_DEFAULT_PATH)
elseif(XM_ONEDNN_GIVEN_DIR)
    find_package(dnnl CONFIG QUIET PATHS "${XM_ONEDNN_GIVEN_DIR}" NO_DEFAULT_PATH)
    if(NOT dnnl_FOUND)
        # Restores the user's folder, so that the next configuration fails in the same way.
        set(dnnl_DIR "${XM_ONEDNN_GIVEN_DIR}" CACHE PATH "" FORCE)
        message(FATAL_ERROR "dnnl_DIR: ${XM_ONEDNN_GIVEN_DIR} has no oneDNN (dnnl-config.cmake)")
    endif()
else()
    find_package(dnnl CONFIG QUIET PATHS "${XM_ONEDNN_BUILT}" NO_DEFAULT_PATH)
    if(NOT dnnl_FOUND)
        find_package(dnnl CONFIG QUIET)
    endif()
endif()
if(NOT XM_ONEDNN_GIVEN_DIR)
    set(XM_ONEDNN_FOUND_DIR "${dnnl_DIR}" CACHE INTERNAL "dnnl_DIR as find_package has left it")
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
    unset(XM_ONEDNN_DECLARES_GROUPED CACHE) # another oneDNN may have been chosen since
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
    # With this, an installed program finds oneDNN outside the system's folders, where it was
    # linked.
    set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
    message(STATUS "oneDNN ${dnnl_VERSION}: CPU engine ${DNNL_CPU_RUNTIME}, "
            "GPU engine ${DNNL_GPU_RUNTIME}, grouped memory ${XM_ONEDNN_HAS_GROUPED}")
else()
    message(STATUS "no oneDNN: its variants are left out")
endif()
