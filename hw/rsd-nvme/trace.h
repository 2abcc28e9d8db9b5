#include "trace/trace-hw_rsd_nvme.h"
