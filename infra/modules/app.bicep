// The probe itself: one replica, public by itself or behind a proxy of the same environment.

@minLength(2)
@maxLength(32)
param name string
param location string
param tags object
param environmentId string

@description('What Azure puts behind the name of the app.')
param environmentDomain string

@description('The identity that may pull the image.')
param identityId string
param registryServer string
param image string
param customDomain string

@description('The app that is public: this one, or a proxy in front.')
param publicName string

@description('off, on or only: docs/rooms.md.')
param rooms string

@minValue(0)
@maxValue(1)
param minReplicas int

@secure()
param toolhostSecret string

@secure()
param requestStateKeys string

param settings object

@description('From where the ingress speaks to the app: shared address space (RFC 6598), which no client on the internet has. X-Forwarded-For is believed from there alone.')
param ingressNetworks string = '100.64.0.0/10'

var isPublic = name == publicName
var defaultHost = '${publicName}.${environmentDomain}'
var publicHost = empty(customDomain) ? defaultHost : customDomain
var hosts = empty(customDomain) ? defaultHost : '${customDomain},${defaultHost}'
// after SIGTERM: the probe's grace_s; what may follow at the worst (5 s of cleanup, 10 s for downloads from
// rooms, 2 s of flushing, 5 s for stubborn work, 3 s for the audit's rows, 0.5 s for the last lines) has 30 seconds more
// before it is killed
var graceSeconds = 20
var fixed = {
  MCP_PROBE_ALLOWED_HOSTS: hosts
  MCP_PROBE_PUBLIC_URL: 'https://${publicHost}'
  MCP_PROBE_TRUSTED_PROXIES: ingressNetworks
  MCP_PROBE_ROOMS: rooms
  MCP_PROBE_GRACE_S: string(graceSeconds)
  MCP_PROBE_LOG_FORMAT: 'json'
  // The ingress cuts what is silent for 240 s. This is also the default; it stands here as the platform depends on it.
  MCP_PROBE_KEEP_ALIVE_S: '15'
  // what all clients together may make it hold, so that it fits into the memory below
  MCP_PROBE_MAX_INCOMING_BYTES: string(64 * 1024 * 1024)
  MCP_PROBE_MAX_UNSENT_BYTES: string(64 * 1024 * 1024)
  MCP_PROBE_MAX_REPLAY_BYTES: string(64 * 1024 * 1024)
  MCP_PROBE_DRAFT_STREAM_BYTES: string(64 * 1024 * 1024)
}
var plain = [for setting in items(union(fixed, settings)): { name: setting.key, value: string(setting.value) }]
var toolhostEnv = empty(toolhostSecret) ? [] : [{ name: 'MCP_PROBE_TOOLHOST_SECRET', secretRef: 'toolhost-secret' }]
var keysEnv = empty(requestStateKeys) ? [] : [{ name: 'MCP_PROBE_REQUEST_STATE_KEYS', secretRef: 'request-state-keys' }]
var toolhostSecrets = empty(toolhostSecret) ? [] : [{ name: 'toolhost-secret', value: toolhostSecret }]
var keysSecrets = empty(requestStateKeys) ? [] : [{ name: 'request-state-keys', value: requestStateKeys }]

// HTTP/1.1 to the app. Clients still get HTTP/2 from the ingress; 'http2' would take WebSockets away.
var publicIngress = {
  external: true
  targetPort: 8000
  transport: 'http'
  allowInsecure: false
  customDomains: empty(customDomain) ? [] : [{ name: customDomain, bindingType: 'Auto' }]
}
// By TCP, as the platform would look at Host, which has the public name.
var privateIngress = { external: false, targetPort: 8000, exposedPort: 8000, transport: 'tcp' }

resource app 'Microsoft.App/containerApps@2026-07-01' = {
  name: name
  location: location
  tags: tags
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: { '${identityId}': {} }
  }
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      // The platform moves the traffic when the new revision is ready, and ends the old one. Two at a time would be two
      // probes that know nothing of each other's sessions.
      activeRevisionsMode: 'Single'
      maxInactiveRevisions: 10
      ingress: isPublic ? publicIngress : privateIngress
      registries: [{ server: registryServer, identity: identityId }]
      secrets: concat(toolhostSecrets, keysSecrets)
    }
    template: {
      terminationGracePeriodSeconds: graceSeconds + 30
      containers: [
        {
          name: 'probe'
          image: image
          env: concat(plain, toolhostEnv, keysEnv)
          resources: { cpu: json('0.5'), memory: '1Gi' }
          probes: [
            {
              type: 'Startup'
              httpGet: { path: '/health', port: 8000 }
              periodSeconds: 2
              failureThreshold: 10
              timeoutSeconds: 2
            }
            {
              // generous: under a flood the probe answers late, and a restart would lose everything it has seen
              type: 'Liveness'
              httpGet: { path: '/health', port: 8000 }
              periodSeconds: 10
              failureThreshold: 6
              timeoutSeconds: 5
            }
            {
              // not ready while it drains
              type: 'Readiness'
              httpGet: { path: '/ready', port: 8000 }
              periodSeconds: 5
              failureThreshold: 2
              timeoutSeconds: 5
            }
          ]
        }
      ]
      // One at most: sessions, tasks, rooms and the event log are in its memory. A second one behind this ingress would
      // answer 404 to the clients of the first.
      scale: { minReplicas: minReplicas, maxReplicas: 1 }
    }
  }
}
