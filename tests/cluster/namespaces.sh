#!/bin/bash
# Four hosts on one machine: network namespaces with addresses and names of their own, joined by a bridge, and
# mpirun started over a plain launch script instead of ssh. Checks that a run on four hosts, one of them slow, leaves
# the files of one process, and that a host that is cut off ends the run by name and the rest goes on.
#   tests/cluster/namespaces.sh PROGRAM FOLDER        root; packages iproute2, openmpi-bin
set -euo pipefail
program=$(realpath "$1")
folder=$(realpath "$2")
source_dir=$(realpath "$(dirname "$0")/../..")
hosts=(1 2 3 4)

remove_hosts() {
  for host in "${hosts[@]}"; do
    ip netns pids "ropd$host" 2> /dev/null | xargs -r kill -KILL 2> /dev/null || true
    ip netns del "ropd$host" 2> /dev/null || true
  done
  ip link del ropd-bridge 2> /dev/null || true
}
trap remove_hosts EXIT
remove_hosts

ip link add ropd-bridge type bridge
ip link set ropd-bridge up
for host in "${hosts[@]}"; do
  ip netns add "ropd$host"
  ip link add "ropd-out$host" type veth peer name eth0 netns "ropd$host"
  ip link set "ropd-out$host" master ropd-bridge up
  ip -n "ropd$host" addr add "10.77.0.$host/24" dev eth0
  ip -n "ropd$host" link set eth0 up
  ip -n "ropd$host" link set lo up
done

# on HOST COMMAND...: in that host's network, under its own name.
cat > "$folder/on" << 'AGENT'
#!/bin/bash
host=${1##*.}
shift
exec ip netns exec "ropd$host" unshare --uts bash -c "hostname ropd-host$host; $*"
AGENT
chmod +x "$folder/on"

ranks() {  # COUNT COMMAND...
  local count=$1 list
  shift
  list=$(printf ',10.77.0.%s' "${hosts[@]:0:$count}")
  "$folder/on" 10.77.0.1 mpirun --allow-run-as-root --oversubscribe --bind-to none -q -n "$count" -H "${list:1}" \
    --mca plm_rsh_agent "$folder/on" --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 \
    --mca oob_tcp_if_include 10.77.0.0/24 "$program" "$@"
}
. "$source_dir/tests/cluster/small_run.sh"

"$program" $(train alone) --quiet
ranks 4 doctor
ranks 4 $(train four) --quiet
same_as_alone four
echo "four: the same files as one process"

slow() { tc -n ropd3 qdisc add dev eth0 root "$@" 2> /dev/null; }
if slow netem delay 5ms rate 200mbit || slow tbf rate 200mbit burst 64kb latency 50ms; then
  ranks 4 $(train slow) --quiet
  same_as_alone slow
  echo "slow: the same files as one process"
  tc -n ropd3 qdisc del dev eth0 root
else
  echo "slow: left out, this kernel shapes no traffic"
fi

ranks 4 $(train cut) --quiet --rank-timeout 3 2> "$folder/cut.log" &
run=$!
until [ "$(cat "$folder/cut/metrics.jsonl" 2> /dev/null | wc -l)" -gt 3 ]; do sleep 0.05; done
ip -n ropd4 link set eth0 down
begin=$SECONDS
until grep -q 'was not heard of' "$folder/cut.log"; do
  [ $((SECONDS - begin)) -lt 60 ] || { echo "FAILED: no line names the host"; cat "$folder/cut.log"; exit 1; }
  sleep 0.1
done
echo "cut off: told after $((SECONDS - begin)) s: $(grep 'not heard' "$folder/cut.log" | head -1)"
# Every rank ends by itself; mpirun waits for its daemon on the host that it cannot reach.
for host in "${hosts[@]}"; do
  until [ -z "$(ip netns pids "ropd$host" | xargs -r ps -o comm= -p | grep -x "$(basename "$program")" || true)" ]; do
    [ $((SECONDS - begin)) -lt 90 ] || { echo "FAILED: a rank of host $host goes on"; exit 1; }
    sleep 0.1
  done
done
for host in "${hosts[@]}"; do ip netns pids "ropd$host" | xargs -r kill -KILL; done
if wait $run; then echo "FAILED: the run ended well without one of its hosts"; exit 1; fi
ranks 3 resume "$folder/cut" --quiet
same_as_alone cut
echo "cut off, then three hosts: the same files as one process"
