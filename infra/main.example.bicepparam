// Copy it to main.bicepparam and fill in. Secrets come from the environment, never from this file: infra/provision.py sets
// what nobody has set to what is there. Without it `az` refuses to go on, as the variables have no default.
using 'main.bicep'

param workload = 'mcpprobe'
param environmentName = 'prod'
// empty for the first deployment: there is no registry yet that could have an image
param image = readEnvironmentVariable('IMAGE', '')
param customDomain = ''
param githubRepository = 'OWNER/NAME'
param minReplicas = 1
// private rooms alone, for a probe that strangers reach; replicas = 3 puts HAProxy in front of three
param rooms = 'only'
param replicas = 1
param toolhostSecret = readEnvironmentVariable('TOOLHOST_SECRET')
param requestStateKeys = readEnvironmentVariable('REQUEST_STATE_KEYS')
