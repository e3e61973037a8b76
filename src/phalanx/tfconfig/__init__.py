"""The heart: what a TF_CONFIG is, and everything one can say about it. Standard library only; usable alone."""

from phalanx.names import TaskId as TaskId
from phalanx.tfconfig.agree import agree as agree
from phalanx.tfconfig.bodies import Bodies as Bodies
from phalanx.tfconfig.check import RULES as RULES
from phalanx.tfconfig.check import check as check
from phalanx.tfconfig.drawing import draw as draw
from phalanx.tfconfig.explain import Explanation as Explanation
from phalanx.tfconfig.explain import explain as explain
from phalanx.tfconfig.finding import Finding as Finding
from phalanx.tfconfig.finding import Place as Place
from phalanx.tfconfig.finding import Severity as Severity
from phalanx.tfconfig.fix import Fixed as Fixed
from phalanx.tfconfig.fix import fix as fix
from phalanx.tfconfig.generate import cluster_from_hosts as cluster_from_hosts
from phalanx.tfconfig.generate import generate as generate
from phalanx.tfconfig.generate import generate_all as generate_all
from phalanx.tfconfig.generate import task_for_host as task_for_host
from phalanx.tfconfig.model import Cluster as Cluster
from phalanx.tfconfig.model import TfConfig as TfConfig
from phalanx.tfconfig.parse import Parsed as Parsed
from phalanx.tfconfig.parse import parse as parse
