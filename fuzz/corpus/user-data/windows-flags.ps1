<powershell>
[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"
& $EKSBootstrapScriptFile -EKSClusterName "harbour" -KubeletExtraArgs "--node-labels=team=red --register-with-taints='os=windows:NoSchedule' --max-pods=40" 3>&1
</powershell>
