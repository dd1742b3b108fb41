#!/usr/bin/env bash
# Stop what start.sh FOLDER started, by pid: stop.sh FOLDER
set -uo pipefail
home=$1
run=$home/run
export SLURM_CONF=$home/etc/slurm.conf

stop() {
    [ -f "$1" ] || return 0
    local pid
    pid=$(cat "$1")
    kill "$pid" 2> /dev/null
    for _ in $(seq 75); do
        kill -0 "$pid" 2> /dev/null || break
        sleep 0.2
    done
    kill -9 "$pid" 2> /dev/null
    rm -f "$1"
}

timeout 10 scancel --user=root 2> /dev/null
for _ in $(seq 40); do
    [ "$(timeout 5 squeue -h 2> /dev/null)" ] || break
    sleep 0.5
done
for name in slurmd slurmctld slurmdbd mariadb munge; do
    stop "$run/$name.pid"
done
for name in slurm gres cgroup; do
    [ "$(readlink "/etc/slurm/$name.conf")" = "$home/etc/$name.conf" ] && rm "/etc/slurm/$name.conf"
done
exit 0
