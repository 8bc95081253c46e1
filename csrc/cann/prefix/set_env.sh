# Source this file in bash or zsh: programs and build scripts that expect an installed CANN then
# find the host CANN. Nothing else in the environment changes, and sourcing it again has no effect.

if [ -n "${BASH_SOURCE:-}" ]; then
  _aclnn_prefix=${BASH_SOURCE[0]}
elif [ -n "${ZSH_VERSION:-}" ]; then
  eval '_aclnn_prefix=${(%):-%x}'
else
  # Other shells do not give a sourced file its own name.
  _aclnn_prefix=./set_env.sh
fi
_aclnn_prefix=$(cd -- "$(dirname -- "$_aclnn_prefix")" && pwd)

if [ ! -e "$_aclnn_prefix/lib64/libopapi.so" ]; then
  echo "set_env.sh: no host CANN in $_aclnn_prefix; use bash or zsh, or change to its directory first" >&2
  unset _aclnn_prefix
  return 1
fi

export ASCEND_HOME_PATH=$_aclnn_prefix
export ASCEND_TOOLKIT_HOME=$_aclnn_prefix
export ASCEND_OPP_PATH=$_aclnn_prefix/opp
export ATB_HOME_PATH=$_aclnn_prefix
export AclnnTorch_DIR=$_aclnn_prefix/share/cmake/AclnnTorch
for _aclnn_bin in "$_aclnn_prefix/tools/profiler/bin" "$_aclnn_prefix/bin"; do
  case ":$PATH:" in
    *":$_aclnn_bin:"*) ;;
    *) export PATH=$_aclnn_bin:$PATH ;;
  esac
done
unset _aclnn_bin
case ":${LD_LIBRARY_PATH:-}:" in
  *":$_aclnn_prefix/lib64:"*) ;;
  *) export LD_LIBRARY_PATH=$_aclnn_prefix/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ;;
esac
case ":${PYTHONPATH:-}:" in
  *":$_aclnn_prefix/python/site-packages:"*) ;;
  *) export PYTHONPATH=$_aclnn_prefix/python/site-packages${PYTHONPATH:+:$PYTHONPATH} ;;
esac
unset _aclnn_prefix
