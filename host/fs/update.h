/* SPDX-License-Identifier: GPL-2.0 */
/* This is how an operation of the core is done that changes the volume. */
#ifndef RFSM_UPDATE_H
#define RFSM_UPDATE_H

#include "checkpoint.h"
#include "error.h"
#include "wake.h"

/*
 * Does an operation of the core, again after each wait for room; ret becomes its result. The caller
 * has no folio locked.
 */
#define rfsm_update(sbi, ret, op)					\
do {									\
	struct rfsm_miss miss_ = { 0 };					\
	int no_space_ = 0;						\
	bool again_, lacked_;						\
	u32 tries_ = 0;							\
									\
	for (;;) {							\
		rfsm_lock(sbi);						\
		(sbi)->fs->no_space = no_space_;			\
		rfsm_miss_begin(sbi, &miss_);				\
		(ret) = (op);						\
		again_ = rfsm_miss_end(sbi, &miss_, ret);		\
		(sbi)->fs->no_space = false;				\
		if ((ret) == -ENOBUFS)					\
			(ret) = rfsm_compact(sbi);			\
		lacked_ = (ret) == -ENOMEM && (sbi)->memory.lacked;	\
		rfsm_unlock(sbi);					\
		if (again_)						\
			rfsm_miss_read(sbi, &miss_);			\
		if (again_ || (ret) == -ENOBUFS ||			\
		    (lacked_ && rfsm_memory_again(sbi, &tries_)))	\
			continue;					\
		if ((ret) != -EAGAIN)					\
			break;						\
		no_space_ = rfsm_wait_room(sbi, false);			\
		if (no_space_ < 0) {					\
			(ret) = no_space_;				\
			break;						\
		}							\
	}								\
	rfsm_set_busy(sbi);						\
	rfsm_kick(sbi);							\
	if (ret)							\
		(ret) = rfsm_failed(sbi, ret);				\
} while (0)

#endif
