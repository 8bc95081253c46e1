/* Reports of programs to CANN's profiler, in addition to acl_prof.h. The host CANN accepts and
 * discards them.
 * Written for aclnn_torch from the published interface; usable from C99 and C++. */
#ifndef ACLNN_TORCH_APROF_PUB_H_
#define ACLNN_TORCH_APROF_PUB_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MSVP_PROF_API __attribute__((visibility("default")))
#else
#define MSVP_PROF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct MsprofApi;

/* Callbacks for the profiler's start and stop; never called here. */
typedef int32_t (*ProfCommandHandle)(uint32_t type, void* data, uint32_t len);

/* All return 0. */
MSVP_PROF_API int32_t MsprofRegisterCallback(uint32_t moduleId, ProfCommandHandle handle);
MSVP_PROF_API int32_t MsprofReportApi(uint32_t nonPersistantFlag, const struct MsprofApi* api);
MSVP_PROF_API int32_t MsprofReportCompactInfo(uint32_t nonPersistantFlag, void* data,
                                              uint32_t length);
MSVP_PROF_API int32_t MsprofReportAdditionalInfo(uint32_t nonPersistantFlag, void* data,
                                                 uint32_t length);

/* The same number for the same text, on every machine and in every run. */
MSVP_PROF_API uint64_t MsprofGetHashId(const char* hashInfo, size_t length);

/* A monotonic clock: nanoseconds of the host's CLOCK_MONOTONIC_RAW. */
MSVP_PROF_API uint64_t MsprofSysCycleTime(void);

#ifdef __cplusplus
}
#endif
#endif
